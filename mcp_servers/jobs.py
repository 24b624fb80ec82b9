"""Long work behind `start -> id`, `status`, `result`, `stop`: a blocking call in a thread each, and one measurement at a time."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable
from typing import Literal

from ..tools.contract.base import Contract
from ..tools.contract.errors import BadInput, EngineFailure, Refused, ServewrightError
from ..tools.experiment.views import Progress
from ..tools.serving.custody import Cancelled

log = logging.getLogger(__name__)

JobKind = Literal["baseline", "experiment", "stack"]
JobState = Literal["running", "done", "failed", "stopped"]
"""running: measuring now; done: its outcome can be read; failed: `failure` says why; stopped: cancelled, and may be started again where it left off."""
FailureOf = Literal["engine", "rules", "input", "internal"]
"""engine: the server under test did not start or died; rules: not allowed (budget, approval, evidence); input: an argument can't be used; internal: ours."""
Work = Callable[[Callable[[Progress], None], threading.Event], object]
"""Blocking work: takes where to report progress and what cancels it."""
KEPT_UPDATES = 200


class Job(Contract):
    """A job that was started, or found already there."""

    id: str
    """Says what it does, so that a repeated start finds it: `baseline`, `stack`, or the hypothesis's id."""
    kind: JobKind
    state: JobState


class JobFailure(Contract):
    of: FailureOf
    message: str


class JobStatus(Contract):
    job: str
    kind: JobKind
    state: JobState
    progress: Progress | None
    """The latest step forward; None before the first."""
    seconds: float
    """Wall seconds since the start, or that it took; 0 when it ran in an earlier process."""
    failure: JobFailure | None = None


class _Running:
    """One job's live side. Written by its own thread, read by any."""

    def __init__(self, job: str, kind: JobKind) -> None:
        self.id = job
        self.kind: JobKind = kind
        self.state: JobState = "running"
        self.cancel, self.ended = threading.Event(), threading.Event()
        self.started, self.took = time.monotonic(), 0.0
        self.updates: deque[tuple[int, Progress]] = deque(maxlen=KEPT_UPDATES)
        self.count = self.told = 0
        self.outcome: object = None
        self.failure: JobFailure | None = None

    def report(self, progress: Progress) -> None:
        self.count += 1
        self.updates.append((self.count, progress))

    def run(self, work: Work) -> None:
        try:
            self.outcome = work(self.report, self.cancel)
            self.state = "done"
        except Cancelled:
            self.state = "stopped"
        except Exception as error:  # the thread's outermost frame: what isn't kept here would be lost
            self.failure, self.state = failure(error), "failed"
        finally:
            self.took = time.monotonic() - self.started
            self.ended.set()

    def status(self) -> JobStatus:
        seconds = self.took if self.ended.is_set() else time.monotonic() - self.started
        latest = self.updates[-1][1] if self.updates else None
        return JobStatus(job=self.id, kind=self.kind, state=self.state, progress=latest, seconds=round(seconds, 3), failure=self.failure)


class Jobs:
    """The jobs of one server process."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Running] = {}
        self._lock = threading.Lock()
        self._closed = False

    def start(self, job: str, kind: JobKind, work: Work) -> Job:
        """Start `work` under this id, or find it running or done. Failed and stopped jobs start again. Raises `Refused` while another one measures."""
        with self._lock:
            known = self._jobs.get(job)
            if known is not None and known.state in ("running", "done"):
                return Job(id=job, kind=known.kind, state=known.state)
            busy = next((other for other in self._jobs.values() if not other.ended.is_set()), None)
            if busy is not None:
                raise Refused(f"job {busy.id} is measuring, and two measurements at a time would disturb each other: wait for it with result, or end it with stop")
            if self._closed:
                raise Refused("this server is shutting down: connect again and start there")
            running = self._jobs[job] = _Running(job, kind)
            threading.Thread(target=running.run, args=(work,), name=f"job-{job}", daemon=True).start()
        return Job(id=job, kind=kind, state="running")

    def status(self, job: str) -> JobStatus | None:
        """None for a job that this process never started."""
        known = self._jobs.get(job)
        return known.status() if known else None

    def outcome(self, job: str) -> object:
        """What the finished work returned; None unless it is done."""
        known = self._jobs.get(job)
        return known.outcome if known and known.state == "done" else None

    def news(self, job: str) -> list[tuple[int, Progress]]:
        """Numbered updates that no earlier call was given."""
        known = self._jobs.get(job)
        if known is None:
            return []
        with self._lock:
            fresh = [update for update in list(known.updates) if update[0] > known.told]
            known.told = fresh[-1][0] if fresh else known.told
        return fresh

    def stop(self, job: str) -> JobStatus | None:
        """Ask the job to end; its engines are stopped by its own thread."""
        known = self._jobs.get(job)
        if known is None:
            return None
        known.cancel.set()
        return known.status()

    def shutdown(self, timeout_s: float) -> bool:
        """Cancel everything and wait, at most this long; True when all have ended. No job starts after it."""
        with self._lock:
            self._closed = True
            running = [job for job in self._jobs.values() if not job.ended.is_set()]
        for job in running:
            job.cancel.set()
        deadline = time.monotonic() + timeout_s
        for job in running:
            job.ended.wait(max(0.0, deadline - time.monotonic()))
        return all(job.ended.is_set() for job in running)


def failure(error: Exception) -> JobFailure:
    """What a client may know of an exception: ours in full, anything else masked and logged under an id."""
    kinds: list[tuple[type[Exception], FailureOf]] = [(EngineFailure, "engine"), (BadInput, "input"), (ServewrightError, "rules")]
    for type_, of in kinds:
        if isinstance(error, type_):
            return JobFailure(of=of, message=str(error))
    return JobFailure(of="internal", message=mask(error))


def mask(error: BaseException) -> str:
    """Log an unexpected error with its traceback; the answer carries only the id to find it by."""
    name = uuid.uuid4().hex[:8]
    log.error("internal error %s", name, exc_info=(type(error), error, error.__traceback__))
    return f"internal error {name}: not your mistake, and trying again is unlikely to help; the server's log (stderr) has the details under this id"
