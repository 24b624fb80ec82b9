from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from servewright.tools.contract.errors import BadInput, Refused
from servewright.tools.ledger.chain import check_chain
from servewright.tools.ledger.ledger import Ledger
from servewright.tools.ledger.records import KINDS
from servewright.tools.ledger.store import StorageFailure


def note(text: str) -> dict[str, str]:
    return {"author": "test", "text": text}


def test_entries_are_chained_and_a_key_is_written_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    first = ledger.append("note", note("a"), key="k")
    second = ledger.append("note", note("b"))
    assert ledger.append("note", note("another text"), key="k") == first
    assert (first.seq, second.seq) == (1, 2) and second.prev == first.hash
    assert ledger.entries("note") == [first, second]
    assert check_chain(ledger) == ([], True)
    assert ledger.head_path.read_text() == f"{2:020d} {second.hash}\n"


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"note"}))
def test_kinds_with_rules_cannot_be_written_from_outside(tmp_path: Path, kind: str) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    with pytest.raises((Refused, BadInput)):
        ledger.append(kind, {"campaign": "c", "experiment": "e", "verdict": "supported"})
    assert ledger.entries() == []


@pytest.mark.parametrize(("kind", "body"), [("remark", note("a")), ("note", {"text": "no author"}), ("note", {**note("a"), "more": 1})])
def test_bodies_that_do_not_fit_are_refused(tmp_path: Path, kind: str, body: dict[str, object]) -> None:
    with pytest.raises(BadInput):
        Ledger(tmp_path / "ledger.db").append(kind, body)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = '{}' WHERE seq = 1",
        "DELETE FROM entries WHERE seq = 2",
        "DELETE FROM entries",
        "INSERT OR REPLACE INTO entries (seq, kind, key, body, at, prev, hash) SELECT seq, kind, key, '{}', at, prev, hash FROM entries WHERE seq = 2",
        "INSERT OR REPLACE INTO entries (seq, kind, key, body, at, prev, hash) SELECT 3, kind, key, '{}', at, hash, 'x' FROM entries WHERE seq = 2",
        "INSERT INTO entries (seq, kind, key, body, at, prev, hash) VALUES (9, 'note', NULL, '{}', '', '', '')",
        "INSERT INTO entries (seq, kind, key, body, at, prev, hash) VALUES (3, 'note', NULL, '{}', '', 'not the last', '')",
    ],
)
def test_sqlite_itself_refuses_changes(tmp_path: Path, statement: str) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    ledger.append("note", note("a"), key="a")
    ledger.append("note", note("b"), key="b")
    stranger = sqlite3.connect(ledger.path)
    with pytest.raises(sqlite3.IntegrityError, match="ledger:"):
        stranger.execute(statement)
    stranger.close()
    assert check_chain(ledger) == ([], True)


def _write_many(path: Path, writer: int, count: int) -> None:
    ledger = Ledger(path)
    for number in range(count):
        ledger.append("note", note(f"{writer} {number}"), key=f"{writer}-{number}")
        ledger.append("note", note(f"{writer}"), key=f"shared-{number}")


def test_ten_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_many, args=(tmp_path / "ledger.db", writer, 10)) for writer in range(10)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0] * 10
    ledger = Ledger(tmp_path / "ledger.db")
    assert {entry.key for entry in ledger.entries()} == {f"{w}-{n}" for w in [*range(10), "shared"] for n in range(10)}
    assert check_chain(ledger) == ([], True)


def test_threads_share_a_ledger(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    threads = [threading.Thread(target=lambda: [ledger.append("note", note("x")) for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ledger.head()[0] == 40 and check_chain(ledger) == ([], True)


def test_a_transaction_is_whole_or_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    with pytest.raises(ZeroDivisionError), ledger.transaction():
        ledger.append("note", note("a"))
        raise ZeroDivisionError
    assert ledger.entries() == [] and not ledger.head_path.exists()
    ledger.append("note", note("b"))
    assert check_chain(ledger) == ([], True)


_ENDLESS = """
import sys
from pathlib import Path
from servewright.tools.ledger.ledger import Ledger
ledger = Ledger(Path(sys.argv[1]))
number = 0
while True:
    with ledger.transaction():
        ledger.append("note", {"author": "t", "text": "x" * 3000})
        ledger.append("note", {"author": "t", "text": "y" * 3000})
    number += 2
    print(number, flush=True)
"""


def test_kill_9_during_a_write_loses_nothing_that_was_confirmed(tmp_path: Path) -> None:
    confirmed = 0
    for delay_s in (0.02, 0.05, 0.1):
        process = subprocess.Popen([sys.executable, "-c", _ENDLESS, str(tmp_path / "ledger.db")], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(delay_s)
        process.send_signal(signal.SIGKILL)
        confirmed += int(process.stdout.read().split()[-1] or 2) if process.wait() else 0
        process.stdout.close()
    ledger = Ledger(tmp_path / "ledger.db")
    count, _ = ledger.head()
    assert count >= confirmed and count % 2 == 0
    assert check_chain(ledger) == ([], True)
    ledger.append("note", note("and on it goes"))


_FULL = """
import resource, sys
from pathlib import Path
from servewright.tools.ledger.ledger import Ledger
from servewright.tools.ledger.store import StorageFailure
ledger = Ledger(Path(sys.argv[1]))
ledger.append("note", {"author": "t", "text": "first"}, key="first")
if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
count = 1
try:
    while True:
        ledger.append("note", {"author": "t", "text": "x" * 2000})
        count += 1
except StorageFailure as error:
    print(count, error)
"""


def test_a_full_disk_ends_a_write_and_leaves_the_ledger_whole(tmp_path: Path) -> None:
    said = subprocess.run([sys.executable, "-c", _FULL, str(tmp_path / "ledger.db"), "200000"], capture_output=True, text=True, check=True).stdout
    assert "nothing of this step was recorded" in said
    ledger = Ledger(tmp_path / "ledger.db")
    assert ledger.head()[0] == int(said.split()[0]) and check_chain(ledger) == ([], True)
    ledger.append("note", note("room again"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small file system")
def test_a_truly_full_disk(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], capture_output=True, check=False).returncode:
        pytest.skip("mounting isn't allowed here")
    try:
        said = subprocess.run([sys.executable, "-c", _FULL, str(disk / "ledger.db")], capture_output=True, text=True, check=True).stdout
        ledger = Ledger(disk / "ledger.db")
        assert ledger.head()[0] == int(said.split()[0]) and check_chain(ledger) == ([], True)
        ledger.close()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(StorageFailure, match=r"ledger\.db"):
        Ledger(tmp_path / "ledger.db").entries()
