"""Wake-ups to the microsecond. An event loop's own timers count whole milliseconds, which at high rates is all there is between two requests."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable
from time import perf_counter

CLOCK_MONOTONIC, TFD_TIMER_ABSTIME = 1, 1
_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC


class _Timer(ctypes.Structure):
    """struct itimerspec: interval and value, each seconds and nanoseconds."""

    _fields_ = (("interval_s", ctypes.c_long), ("interval_ns", ctypes.c_long), ("s", ctypes.c_long), ("ns", ctypes.c_long))


class Alarm:
    """Calls back at a time of `perf_counter`, by a timerfd where there is one (Linux), else by the loop's timer and a short spin through the loop."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.Handle | None = None
        self._fd = -1
        if sys.platform == "linux":
            self._libc = ctypes.CDLL(None, use_errno=True)
            self._fd = self._libc.timerfd_create(CLOCK_MONOTONIC, _FLAGS)
        if self._fd >= 0:
            self._timer = _Timer()
            self._pointer = ctypes.byref(self._timer)
            self._loop.add_reader(self._fd, self._rung)

    def at(self, when: float) -> None:
        """Ring once, at `when` or right after; a second call moves it."""
        if self._fd >= 0:
            seconds = int(when)
            self._timer.s, self._timer.ns = seconds, int((when - seconds) * 1e9) + 1
            self._libc.timerfd_settime(self._fd, TFD_TIMER_ABSTIME, self._pointer, None)
        else:
            self._wait(when)

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        if self._handle is not None:
            self._handle.cancel()

    def _rung(self) -> None:
        os.read(self._fd, 8)
        self._ring()

    def _wait(self, when: float) -> None:
        left = when - perf_counter()
        if left <= 0:
            self._ring()
        elif left > 0.002:
            self._handle = self._loop.call_later(left - 0.002, self._wait, when)
        else:
            self._handle = self._loop.call_soon(self._wait, when)
