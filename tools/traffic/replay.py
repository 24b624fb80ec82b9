"""Replay by a process of its own, so that nothing of the caller's delays a request."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import orjson

from .job import ReplayJob, ReplayProgress, ReplayResult

SILENCE_S = 120.0
"""Wall seconds without a line from the worker, beyond the longest that a step may be silent, after which it counts as hung."""
STOP_S = 10.0


class ReplayWorker:
    """The replay's process. Started early it has its imports behind it when the server is ready; it ends with the `with` block."""

    def __init__(self) -> None:
        self.complaints = tempfile.TemporaryFile()  # noqa: SIM115 closed in __exit__
        command = [sys.executable, "-m", "servewright.tools.traffic.worker"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.complaints, start_new_session=True)

    def __enter__(self) -> ReplayWorker:
        return self

    def __exit__(self, *_: object) -> None:
        _stop(self.process)
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.complaints.close()

    def last_words(self) -> str:
        self.complaints.seek(0)
        return self.complaints.read()[-4000:].decode("utf-8", "replace").strip().rpartition("\n")[2]


def run_replay(
    job: ReplayJob,
    *,
    progress: Callable[[ReplayProgress], None] | None = None,
    cancel: threading.Event | None = None,
    worker: ReplayWorker | None = None,
) -> ReplayResult:
    """Run a job to its end. `progress` is called in the calling thread, twice a wall second; setting `cancel` stops the replay, with the rows so far written.

    Never raises for what the server or the worker do: `error` says why a ladder is unfinished, and the rows of all steps that ended are there.
    `worker`: one that was started beforehand; it runs this one job.
    """
    began = time.monotonic()
    with worker or ReplayWorker() as used:
        process = used.process
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(job.model_dump_json().encode() + b"\n")
            process.stdin.flush()
            result = _follow(process, process.stdout, progress, cancel)
        except BrokenPipeError:
            result = None
        _stop(process)
        if result is not None:
            return result
        last = used.last_words()
    return _broken(job, last or f"the replay worker ended with {process.returncode}", time.monotonic() - began)


def _follow(
    worker: subprocess.Popen[bytes], stdout: IO[bytes], progress: Callable[[ReplayProgress], None] | None, cancel: threading.Event | None
) -> ReplayResult | None:
    """Pass progress on until the result is there; None when the worker ended, or fell silent, without one."""
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def pump() -> None:
        for line in stdout:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=pump, daemon=True).start()
    heard, told = time.monotonic(), False
    while time.monotonic() - heard < SILENCE_S:
        if cancel is not None and cancel.is_set() and not told:
            worker.terminate()
            told = True
        try:
            line = lines.get(timeout=0.1)
        except queue.Empty:
            continue
        heard = time.monotonic()
        if line is None:
            return None
        message = orjson.loads(line)
        if "result" in message:
            return ReplayResult.model_validate(message["result"])
        if progress is not None:
            progress(ReplayProgress.model_validate(message["progress"]))
    return None


def _stop(worker: subprocess.Popen[bytes]) -> None:
    """End the worker: by closing its lifeline, then by force."""
    assert worker.stdin is not None
    if not worker.stdin.closed:
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.close()
    try:
        worker.wait(STOP_S)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()


def _broken(job: ReplayJob, reason: str, wall_s: float) -> ReplayResult:
    there = Path(job.rows).is_file()
    return ReplayResult(rows=job.rows if there else None, client=None, wall_s=wall_s, error=f"the replay worker broke: {reason}", stopped_at="error")
