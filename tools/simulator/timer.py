"""A timer finer than the event loop's: Linux timerfd, because uvloop's own timers count whole milliseconds, ten of the server's at clock 10."""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
import time
from collections.abc import Callable

_CLOCK_MONOTONIC, _NONBLOCK, _ABSOLUTE = 1, 0o4000, 1


class Timer:
    """Calls `callback` once, when `time.monotonic()` reaches the deadline set last. Where there is no timerfd, the loop's timers serve."""

    def __init__(self, loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
        self._loop, self._callback = loop, callback
        self._handle: asyncio.TimerHandle | None = None
        self._libc = ctypes.CDLL(None, use_errno=True)
        create = getattr(self._libc, "timerfd_create", None)
        self._fd = create(_CLOCK_MONOTONIC, _NONBLOCK) if create else -1
        if self._fd >= 0:
            self._buffer = ctypes.create_string_buffer(32)
            loop.add_reader(self._fd, self._fired)

    def set(self, deadline: float) -> None:
        """`deadline` by `time.monotonic()`, in seconds; replaces the one before. Past ones are due at once."""
        if self._fd < 0:
            if self._handle is not None:
                self._handle.cancel()
            self._handle = self._loop.call_later(max(0.0, deadline - time.monotonic()), self._callback)
            return
        whole = int(deadline)
        struct.pack_into("qqqq", self._buffer, 0, 0, 0, whole, int((deadline - whole) * 1e9) or 1)
        self._libc.timerfd_settime(self._fd, _ABSOLUTE, self._buffer, None)

    def _fired(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return
        self._callback()

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        elif self._handle is not None:
            self._handle.cancel()
