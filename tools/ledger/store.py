"""Raw files by what is in them: an artifact's name is the SHA-256 of its bytes."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..contract.errors import BadInput, ServewrightError

_NAME = re.compile(r"sha256:([0-9a-f]{64})")
_CHUNK = 1 << 20


class StorageFailure(ServewrightError):
    """The project's folder can't be written or read (disk full, damaged, no permission). What was recorded before stays."""


class ArtifactStore:
    """A folder of read-only files, `<folder>/ab/abcd...`. Safe for any number of processes: files appear whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, content: Path | bytes) -> str:
        """Keep a copy; returns `sha256:<hex>`. The bytes are on the disk when this returns. Raises `StorageFailure`."""
        try:
            return self._put(content)
        except OSError as error:
            where = content if isinstance(content, Path) else f"{len(content)} bytes"
            raise StorageFailure(f"{self.folder}: could not keep {where}: {error.strerror}; nothing was recorded, make room or mend it and resume") from error

    def get(self, name: str) -> Path:
        """Where the artifact lies. The bytes aren't checked: use `read` or `verify` for that. Raises `BadInput` where there is none."""
        path = self._path(name)
        if not path.is_file():
            raise BadInput("artifact", name, f"an artifact of {self.folder}")
        return path

    def read(self, name: str) -> bytes:
        """The artifact's bytes, checked against its name. Raises `StorageFailure` when they don't match."""
        content = self.get(name).read_bytes()
        if hashlib.sha256(content).hexdigest() != name.removeprefix("sha256:"):
            raise StorageFailure(f"artifact {name}: its bytes were changed since they were recorded")
        return content

    def verify(self, name: str) -> str:
        """What is wrong with the artifact; empty when nothing is."""
        path = self._path(name)
        if not path.is_file():
            return f"artifact {name} is missing"
        with path.open("rb") as source:
            found = hashlib.file_digest(source, "sha256").hexdigest()
        return "" if found == name.removeprefix("sha256:") else f"artifact {name} was changed: its bytes give {found}"

    def names(self) -> Iterator[str]:
        """All artifacts that lie in the folder."""
        for path in sorted(self.folder.glob("??/*")):
            if re.fullmatch(r"[0-9a-f]{64}", path.name):
                yield f"sha256:{path.name}"

    def _path(self, name: str) -> Path:
        match = _NAME.fullmatch(name)
        if match is None:
            raise BadInput("artifact", name, "sha256:<64 hex digits>")
        return self.folder / match[1][:2] / match[1]

    def _put(self, content: Path | bytes) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".new-", dir=self.folder)
        try:
            with os.fdopen(handle, "wb") as target:
                name = "sha256:" + _copy(content, target)
                target.flush()
                os.fchmod(target.fileno(), 0o444)
                os.fsync(target.fileno())
            path = self._path(name)
            path.parent.mkdir(exist_ok=True)
            Path(temporary).replace(path)  # also mends a copy that was damaged
            for folder in (path.parent, self.folder):
                _sync(folder)
            return name
        finally:
            Path(temporary).unlink(missing_ok=True)


def _copy(content: Path | bytes, target: BinaryIO) -> str:
    sha = hashlib.sha256()
    if isinstance(content, bytes):
        sha.update(content)
        target.write(content)
        return sha.hexdigest()
    with content.open("rb") as source:
        while chunk := source.read(_CHUNK):
            sha.update(chunk)
            target.write(chunk)
    return sha.hexdigest()


def _sync(folder: Path) -> None:
    """A rename survives a power cut only once its folder is on the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
