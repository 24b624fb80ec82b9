"""Which process does a run, told apart from a later one with the same number."""

from __future__ import annotations

import os
from pathlib import Path

from ..contract.base import Contract


class Owner(Contract):
    pid: int
    started: int
    """Start of the process: clock ticks since boot on Linux, seconds since the epoch elsewhere."""
    boot: str
    """Changes with every boot of the machine."""

    @classmethod
    def me(cls) -> Owner:
        pid = os.getpid()
        return cls(pid=pid, started=_started(pid) or 0, boot=_boot())

    def alive(self) -> bool:
        """The very process still runs on this machine; a zombie doesn't."""
        return self.boot == _boot() and _started(self.pid) == self.started


def _started(pid: int) -> int | None:
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            return None
        return None if fields[0] in "ZX" else int(fields[19])
    import psutil

    try:
        return int(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        import psutil

        return str(int(psutil.boot_time()))
