"""Who may use which device of this machine, until when: one holder at a time."""

from __future__ import annotations

import json
import secrets
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from .paths import state_folder
from .processes import Identity, alive

_SCHEMA = """
CREATE TABLE IF NOT EXISTS leases (id TEXT PRIMARY KEY, body TEXT NOT NULL, state TEXT NOT NULL, expires_at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS devices (device TEXT PRIMARY KEY, lease TEXT NOT NULL REFERENCES leases(id) ON DELETE CASCADE);
"""


@dataclass(frozen=True)
class Lease:
    """One engine's right to its devices. The keeper holds it for the owner."""

    id: str
    devices: tuple[str, ...]
    """`cpu:3` for a processor core, `gpu:<UUID>` for a device."""
    what: str
    """What for, as a person reads it: the endpoint's name."""
    owner: Identity
    keeper: Identity
    since: float
    """Unix time."""
    engine: Identity | None = None
    port: int | None = None
    log: str | None = None

    @property
    def mark(self) -> str:
        """In the environment of every process of the engine."""
        return f"SERVEWRIGHT_LEASE={self.id}"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Lease:
        body = json.loads(text)
        who = {name: Identity(**body[name]) for name in ("owner", "keeper", "engine") if body[name] is not None}
        return Lease(**(body | who | {"devices": tuple(body["devices"])}))

    def __str__(self) -> str:
        minutes = max(0.0, time.time() - self.since) / 60
        return f"{', '.join(self.devices)} held by {self.what!r} (owner pid {self.owner.pid}, lease {self.id}) for {minutes:.1f} min"


class Leases:
    """The table `leases.db`. Every change is one immediate transaction: readers wait, none fail half-way."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = (folder or state_folder()) / "leases.db"
        with self._write() as database:
            for statement in _SCHEMA.split(";"):
                database.execute(statement)

    def acquire(self, devices: Sequence[str], *, what: str, owner: Identity, keeper: Identity, ttl_s: float) -> Lease | tuple[Lease, ...]:
        """All of the devices at once, or who holds some of them (also those whose keeper is dead: the reaper frees these)."""
        lease = Lease(id=secrets.token_hex(8), devices=tuple(devices), what=what, owner=owner, keeper=keeper, since=time.time())
        with self._write() as database:
            if holders := self._holders(database, devices):
                return holders
            database.execute("INSERT INTO leases VALUES (?, ?, 'held', ?)", (lease.id, lease.to_json(), time.time() + ttl_s))
            database.executemany("INSERT INTO devices VALUES (?, ?)", [(device, lease.id) for device in lease.devices])
        return lease

    def update(self, lease: Lease) -> None:
        with self._write() as database:
            database.execute("UPDATE leases SET body = ? WHERE id = ?", (lease.to_json(), lease.id))

    def ask_release(self, lease_id: str) -> None:
        """Tell the keeper to stop the engine."""
        with self._write() as database:
            database.execute("UPDATE leases SET state = 'releasing' WHERE id = ?", (lease_id,))

    def remove(self, lease_id: str) -> None:
        with self._write() as database:
            database.execute("DELETE FROM leases WHERE id = ?", (lease_id,))

    def wanted(self, lease_id: str) -> bool:
        """False once the lease was asked back, has expired, or is gone."""
        with self._read() as database:
            row = database.execute("SELECT state, expires_at FROM leases WHERE id = ?", (lease_id,)).fetchone()
        return row is not None and row[0] == "held" and row[1] > time.time()

    def get(self, lease_id: str) -> Lease | None:
        return next((lease for lease in self.all() if lease.id == lease_id), None)

    def all(self) -> tuple[Lease, ...]:
        with self._read() as database:
            return tuple(Lease.from_json(row[0]) for row in database.execute("SELECT body FROM leases ORDER BY id"))

    def orphaned(self) -> tuple[Lease, ...]:
        """Leases whose keeper is dead."""
        return tuple(lease for lease in self.all() if not alive(lease.keeper))

    @staticmethod
    def _holders(database: sqlite3.Connection, devices: Sequence[str]) -> tuple[Lease, ...]:
        marks = ",".join("?" * len(devices))
        query = f"SELECT DISTINCT body FROM leases JOIN devices ON devices.lease = leases.id WHERE device IN ({marks})"  # noqa: S608 - only question marks are put in
        return tuple(Lease.from_json(row[0]) for row in database.execute(query, tuple(devices)))

    @contextmanager
    def _read(self) -> Iterator[sqlite3.Connection]:
        database = sqlite3.connect(self.path, timeout=30, isolation_level=None)
        try:
            database.execute("PRAGMA foreign_keys = ON")
            yield database
        finally:
            database.close()

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with self._read() as database:
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")
