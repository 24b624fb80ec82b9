"""The replay's own process: `python -m servewright.tools.traffic.worker`, a job on stdin, progress and result as JSON lines on stdout.

stdin stays open as a lifeline: when it ends, whoever asked is gone, and the replay stops. SIGTERM cancels: what has been measured is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from importlib import import_module
from pathlib import Path
from time import perf_counter

import orjson

from ..contract.errors import ServewrightError
from .frozen import open_frozen
from .job import ReplayJob, ReplayResult
from .ladder import Ladder
from .pool import raise_file_limit

PRIORITY = -10
"""Niceness, where the user may: a client that waits for a processor sends late."""


def emit(kind: str, value: dict[str, object]) -> None:
    sys.stdout.buffer.write(orjson.dumps({kind: value}) + b"\n")
    sys.stdout.buffer.flush()


async def serve(job: ReplayJob, began: float) -> ReplayResult:
    """Run the job's ladder, listening for the two ways to be stopped."""
    loop = asyncio.get_running_loop()
    ladder = Ladder(job, open_frozen(Path(job.workload)), lambda progress: emit("progress", progress.model_dump()))
    loop.add_signal_handler(signal.SIGTERM, ladder.cancel)

    def lifeline() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            ladder.cancel()

    loop.add_reader(0, lifeline)
    try:
        return await ladder.climb(began)
    finally:
        with contextlib.suppress(ValueError):
            loop.remove_reader(0)


def main() -> None:
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    import uvloop

    import_module("polars")  # before the job comes: no step waits for it, and the server's start hides it
    line = sys.stdin.buffer.readline()
    if not line:
        return  # whoever started it has no job after all
    began = perf_counter()
    job = ReplayJob.model_validate_json(line)
    if job.cores and hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, job.cores)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, PRIORITY)
    raise_file_limit()
    try:
        result = uvloop.run(serve(job, began))
    except ServewrightError as error:
        result = ReplayResult(rows=None, client=None, wall_s=perf_counter() - began, error=str(error), stopped_at="error")
    emit("result", result.model_dump())


if __name__ == "__main__":
    main()
