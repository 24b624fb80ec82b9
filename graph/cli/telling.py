"""Progress of long work on stderr: one line that is rewritten on a terminal, one line a step elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...tools.experiment.views import Progress


def teller() -> Callable[[Progress], None]:
    """A listener for `Campaign`'s long methods."""
    last = [""]

    def tell(progress: Progress) -> None:
        step = progress.message if sys.stderr.isatty() else f"{progress.phase} {progress.done} {progress.message.partition(': ')[0]} {'launching' in progress.message}"
        if step == last[0]:
            return
        last[0] = step
        if sys.stderr.isatty():
            print(f"\r\x1b[2K{progress.message}", end="", file=sys.stderr, flush=True)
        else:
            print(progress.message, file=sys.stderr, flush=True)

    return tell
