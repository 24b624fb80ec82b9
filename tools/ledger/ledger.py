"""The record itself: append-only, hash-chained, one SQLite file, any number of writers."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..contract.base import Contract, canonical
from ..contract.errors import Refused
from .records import OPEN_KINDS, parse
from .schema import GENESIS, SCHEMA
from .store import StorageFailure

_COLUMNS = "seq, kind, key, body, at, prev, hash"
_WAIT_S = 60.0


@dataclass(frozen=True)
class Entry:
    """`at`: UTC, ISO 8601. `hash` covers all the other fields; `prev` is the entry's before it."""

    seq: int
    kind: str
    key: str | None
    body: dict[str, Any]
    at: str
    prev: str
    hash: str


def chain_hash(fields: Sequence[str | int | None]) -> str:
    """SHA-256 (hex) over an entry's seq, kind, key, body, at, prev; body is the stored text, so that white space counts too."""
    return hashlib.sha256(canonical(list(fields))).hexdigest()


class Ledger:
    """Opens (and makes) the file at first use. One object may be shared by threads; a forked child gets its own connection.

    Beside the file lies `<name>.head`: number and hash of the newest entry, rewritten after each commit.
    A ledger that is shorter than its head says was cut off at the end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._db: sqlite3.Connection | None = None
        self._pid = 0
        self._inside = False
        self._written: list[Entry] = []

    @property
    def head_path(self) -> Path:
        return self.path.with_suffix(".head")

    def append(self, kind: str, body: dict[str, Any] | Contract, *, key: str | None = None) -> Entry:
        """Add an entry that no rule guards (kind `note`). A second one with the same (kind, key) returns the first.

        Raises `Refused` for kinds that only their own functions write (a verdict comes from `record_verdict` alone), `BadInput` for a body that doesn't fit.
        """
        parse(kind, body)
        if kind not in OPEN_KINDS:
            raise Refused(f"ledger: {kind} entries aren't written from outside; they come from the function that keeps their rules")
        return self._write(kind, body, key=key)

    def entries(self, *kinds: str, campaign: str | None = None, key: str | None = None) -> list[Entry]:
        """In order of `seq`; all kinds when none is named."""
        where, values = ["1"], []
        if kinds:
            where.append(f"kind IN ({', '.join('?' * len(kinds))})")
            values += kinds
        for column, value in (("campaign", campaign), ("key", key)):
            if value is not None:
                where.append(f"{column} = ?")
                values.append(value)
        with self._lock, self._guard():
            rows = self._connection().execute(f"SELECT {_COLUMNS} FROM entries WHERE {' AND '.join(where)} ORDER BY seq", values).fetchall()  # noqa: S608 only names from above
        return [Entry(seq, kind, name, json.loads(body), at, prev, digest) for seq, kind, name, body, at, prev, digest in rows]

    def find(self, kind: str, key: str) -> Entry | None:
        return next(iter(self.entries(kind, key=key)), None)

    def head(self) -> tuple[int, str]:
        """Number and hash of the newest entry; (0, 64 zeros) when there is none."""
        with self._lock, self._guard():
            row = self._connection().execute("SELECT seq, hash FROM entries ORDER BY seq DESC LIMIT 1").fetchone()
        return (row[0], row[1]) if row else (0, GENESIS)

    def raw(self) -> tuple[list[tuple[Any, ...]], dict[str, str], list[str]]:
        """For `verify`: rows as stored (body as text), the schema as stored, and what SQLite finds wrong with the file."""
        with self._lock, self._guard():
            db = self._connection()
            damage = [row[0] for row in db.execute("PRAGMA integrity_check(5)") if row[0] != "ok"]
            schema = dict(db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
            rows = db.execute(f"SELECT {_COLUMNS} FROM entries NOT INDEXED ORDER BY seq").fetchall()  # noqa: S608 only names from above
        return rows, schema, damage

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Hold the write lock: what is read inside stays true until the end, and entries appear together or not at all. May be nested."""
        with self._lock:
            if self._inside:
                yield
                return
            with self._guard():
                db = self._connection()
                db.execute("BEGIN IMMEDIATE")  # a deferred one could not wait for the lock once it has read
            self._inside, self._written = True, []
            try:
                yield
                with self._guard():
                    db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            finally:
                self._inside = False
            if self._written:
                self._anchor(self._written[-1])

    def close(self) -> None:
        with self._lock:
            if self._db is not None and self._pid == os.getpid():
                self._db.close()
            self._db = None

    def _write(self, kind: str, body: dict[str, Any] | Contract, *, key: str | None = None) -> Entry:
        """For this package's functions only: they keep the rules of the kind."""
        text = canonical(parse(kind, body)).decode()
        with self.transaction():
            if key is not None and (first := self.find(kind, key)) is not None:
                return first
            seq, prev = self.head()
            seq, at = seq + 1, datetime.now(UTC).isoformat(timespec="microseconds")
            entry = Entry(seq, kind, key, json.loads(text), at, prev, chain_hash([seq, kind, key, text, at, prev]))
            with self._guard():
                self._connection().execute(f"INSERT INTO entries ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", (seq, kind, key, text, at, prev, entry.hash))  # noqa: S608
            self._written.append(entry)
        return entry

    def _anchor(self, newest: Entry) -> None:
        """One write in place of one short line. Late or lost it only makes the anchor older, never wrong, so a failure isn't the entry's."""
        try:
            handle = os.open(self.head_path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                if int(os.pread(handle, 20, 0) or b"0") < newest.seq:
                    os.pwrite(handle, f"{newest.seq:020d} {newest.hash}\n".encode(), 0)
            finally:
                os.close(handle)
        except (OSError, ValueError):
            return

    def _connection(self) -> sqlite3.Connection:
        if self._db is None or self._pid != os.getpid():
            self._db, self._pid, self._inside = self._open(), os.getpid(), False
        return self._db

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        db = sqlite3.connect(self.path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False)
        deadline = time.monotonic() + _WAIT_S
        while True:
            try:  # the change to WAL doesn't wait for the lock by itself
                db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        db.execute("PRAGMA synchronous = FULL")
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            db.execute("BEGIN IMMEDIATE")
            if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                for statement in SCHEMA.values():
                    db.execute(statement)
            db.execute("COMMIT")
        return db

    @contextmanager
    def _guard(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise StorageFailure(f"{self.path}: {error}; nothing of this step was recorded, what was recorded before stays") from error
        except OSError as error:
            raise StorageFailure(f"{self.path}: {error.strerror}") from error
