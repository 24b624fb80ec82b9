"""One process at a time: a lock on a campaign that its holder's death releases."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..contract.errors import Refused

POLL_S = 0.2


@contextmanager
def alone(path: Path, what: str, *, wait_s: float = 0.0, cancel: threading.Event | None = None) -> Iterator[None]:
    """Hold the lock file for the time of the block. Raises `Refused` naming the holder when it stays taken for `wait_s` seconds, or `cancel` is set."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + wait_s
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline or (cancel is not None and cancel.is_set()):
                    holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
                    raise Refused(f"{what}: process {holder or '(unknown)'} is at it; wait until it is done, or end that process") from None
                time.sleep(POLL_S)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)
