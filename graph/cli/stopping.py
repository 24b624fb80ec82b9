"""Ctrl-C and SIGTERM ask running work to stop; what it launched is gone before the command ends."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def cancelled_by_signals(cancel: threading.Event) -> Iterator[None]:
    """Sets `cancel` on the first signal; the work then ends with `Cancelled`, and the command with exit code 130. A second Ctrl-C ends it at once."""
    from ...tools.serving.custody import Cancelled

    def asked(number: int, _frame: FrameType | None) -> None:
        if cancel.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        cancel.set()

    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    except Cancelled:
        print("servewright: stopped; finished runs are kept, the same command goes on from there", file=sys.stderr)
        sys.exit(130)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
