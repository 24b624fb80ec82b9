"""Processes by identity, not by number alone: numbers are used again.

The keeper imports this, and starts with every launch: no pydantic here, psutil only where there is no /proc.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PROC = Path("/proc/self/stat").exists()


@dataclass(frozen=True)
class Identity:
    """One process of one boot: never mistaken for a later one with the same number."""

    pid: int
    start: str
    """When it started: clock ticks since boot on Linux."""
    boot: str


@cache
def boot_id() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        import psutil

        return str(int(psutil.boot_time()))


def start_of(pid: int) -> str | None:
    """When that process started; None: there is none, or only its zombie."""
    if _PROC:
        fields = _stat(pid)
        return None if fields is None or fields[0] in "ZX" else fields[19]
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.Error:
        return None


def identify(pid: int | None = None) -> Identity:
    """Who that process (by default this one) is. Raises `ProcessLookupError`."""
    pid = os.getpid() if pid is None else pid
    start = start_of(pid)
    if start is None:
        raise ProcessLookupError(pid)
    return Identity(pid=pid, start=start, boot=boot_id())


def alive(who: Identity) -> bool:
    return who.boot == boot_id() and start_of(who.pid) == who.start


def group(leader: Identity, mark: str = "") -> list[int]:
    """Live processes of the session that `leader` opened, and those whose environment carries `mark`, wherever they moved.

    A session's number can't be used again while one of its processes lives; a process that started before the leader is a stranger all the same.
    """
    if leader.boot != boot_id() or (start_of(leader.pid) not in (leader.start, None)):
        return _marked(mark)
    members = set(_marked(mark))
    for pid in _pids():
        fields = _stat(pid)
        if fields is not None and fields[0] not in "ZX" and leader.pid in (int(fields[2]), int(fields[3])) and int(fields[19]) >= int(leader.start):
            members.add(pid)
    return sorted(members - {os.getpid()})


def end(leader: Identity, mark: str = "", grace_s: float = 10.0) -> bool:
    """End the leader's whole group: SIGTERM to the leader, then to all, SIGKILL after the grace. True: nothing is left. Safe to call again."""
    if alive(leader):
        _signal([leader.pid], signal.SIGTERM)
    _wait(lambda: not alive(leader), grace_s)
    _signal(group(leader, mark), signal.SIGTERM)
    _wait(lambda: not group(leader, mark), min(2.0, grace_s))
    for _ in range(100):
        if not (rest := group(leader, mark)):
            return True
        _signal(rest, signal.SIGKILL)
        time.sleep(0.05)
    return False


def _wait(done: Callable[[], bool], limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not done() and time.monotonic() < deadline:
        time.sleep(0.05)


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()] if _PROC else []  # noqa: PTH208 - half the time of Path.iterdir


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the state on (proc(5): state is field 3, pgrp 5, session 6, starttime 22)."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode("ascii").split()
    except (OSError, ValueError):
        return None


def _marked(mark: str) -> list[int]:
    if not mark:
        return []
    needle, found = mark.encode(), []
    for pid in _pids():
        with contextlib.suppress(OSError):
            if needle in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0") and start_of(pid) is not None:
                found.append(pid)
    return found


def listens(pids: list[int], port: int) -> bool:
    """Whether one of these processes listens on that TCP port; True where the system doesn't let us see."""
    import psutil

    for pid in pids:
        try:
            if any(c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port for c in psutil.Process(pid).net_connections(kind="tcp")):
                return True
        except psutil.AccessDenied:
            return True
        except psutil.NoSuchProcess:
            continue
    return False
