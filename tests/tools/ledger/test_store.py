from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from servewright.tools.contract.errors import BadInput
from servewright.tools.ledger.store import ArtifactStore, StorageFailure


def test_the_name_is_the_digest_and_the_same_bytes_lie_once(tmp_path: Path) -> None:
    store, source = ArtifactStore(tmp_path / "artifacts"), tmp_path / "rows"
    source.write_bytes(b"rows")
    name = store.put(source)
    assert name == "sha256:" + hashlib.sha256(b"rows").hexdigest() == store.put(b"rows")
    assert list(store.names()) == [name]
    assert store.read(name) == b"rows" and store.verify(name) == ""
    assert not store.get(name).stat().st_mode & 0o222
    assert source.exists()


def test_changed_and_missing_bytes_are_told_and_mended_by_putting_them_again(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path)
    name = store.put(b"abc")
    path = store.get(name)
    path.chmod(0o644)
    path.write_bytes(b"abd")
    assert "was changed" in store.verify(name)
    with pytest.raises(StorageFailure, match="changed"):
        store.read(name)
    assert store.put(b"abc") == name and store.verify(name) == ""
    path.unlink()
    assert "missing" in store.verify(name)


@pytest.mark.parametrize("name", ["", "sha256:", "sha256:../../../etc/passwd", "sha256:" + "a" * 63, "sha256:" + "a" * 64 + "\n", "sha256:" + "0" * 64])
def test_names_that_are_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput):
        ArtifactStore(tmp_path).get(name)


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    code = f"""
import resource
from pathlib import Path
from servewright.tools.ledger.store import ArtifactStore, StorageFailure
store = ArtifactStore(Path({str(tmp_path)!r}))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
store.put(b"x" * 4096)
try:
    store.put(b"x" * 4097)
except StorageFailure as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "nothing was recorded" in said
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.stat().st_size for path in files] == [4096]
