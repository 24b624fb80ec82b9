"""Jobs: one at a time, found again by their id, stopped when asked, and failures that tell only what a client may know."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from servewright.mcp_servers.jobs import Jobs, JobStatus
from servewright.tools.contract.errors import EngineFailure, Refused
from servewright.tools.experiment.views import Progress
from servewright.tools.serving.custody import Cancelled

Report = Callable[[Progress], None]


def until_stopped(report: Report, cancel: threading.Event) -> object:
    report(Progress(phase="floor", message="run 1", done=1, total=3))
    if not cancel.wait(30):
        raise TimeoutError("nobody stopped it")
    raise Cancelled("stopped")


def ended(jobs: Jobs, job: str) -> JobStatus:
    deadline = time.monotonic() + 10
    while (status := jobs.status(job)) is not None and status.state == "running":
        assert time.monotonic() < deadline
        time.sleep(0.005)
    assert status is not None
    return status


def test_a_repeated_start_finds_the_running_and_then_the_finished_job() -> None:
    jobs, go, runs = Jobs(), threading.Event(), []

    def work(report: Report, cancel: threading.Event) -> object:
        runs.append(1)
        go.wait(10)
        return "outcome"

    assert jobs.start("h-1", "experiment", work).state == "running"
    assert jobs.start("h-1", "experiment", work).state == "running"
    go.set()
    assert ended(jobs, "h-1").state == "done"
    assert jobs.start("h-1", "experiment", work).state == "done"
    assert jobs.outcome("h-1") == "outcome"
    assert runs == [1]


def test_a_second_measurement_is_refused_and_told_which_one_runs() -> None:
    jobs = Jobs()
    jobs.start("baseline", "baseline", until_stopped)
    with pytest.raises(Refused, match="job baseline is measuring"):
        jobs.start("h-1", "experiment", until_stopped)
    jobs.stop("baseline")
    assert ended(jobs, "baseline").state == "stopped"
    assert jobs.start("h-1", "experiment", until_stopped).state == "running"
    assert jobs.shutdown(10)


def test_a_stopped_job_starts_again() -> None:
    jobs = Jobs()
    jobs.start("h-1", "experiment", until_stopped)
    jobs.stop("h-1")
    assert ended(jobs, "h-1").state == "stopped"
    jobs.start("h-1", "experiment", lambda report, cancel: "now")
    assert ended(jobs, "h-1").state == "done"


def test_news_are_told_once_and_numbered() -> None:
    jobs = Jobs()
    jobs.start("baseline", "baseline", until_stopped)
    while not (news := jobs.news("baseline")):
        time.sleep(0.005)
    assert [(number, update.message) for number, update in news] == [(1, "run 1")]
    assert jobs.news("baseline") == []
    status = jobs.status("baseline")
    assert status is not None and status.progress is not None and status.progress.total == 3
    assert jobs.shutdown(10)


def test_an_engine_failure_is_told_and_anything_else_is_masked(capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> None:
    jobs = Jobs()

    def engine(report: Report, cancel: threading.Event) -> object:
        raise EngineFailure("out_of_memory", "CUDA out of memory")

    def bug(report: Report, cancel: threading.Event) -> object:
        raise RuntimeError("secret detail")

    jobs.start("h-1", "experiment", engine)
    failed = ended(jobs, "h-1")
    assert failed.state == "failed" and failed.failure is not None
    assert failed.failure.of == "engine" and "CUDA out of memory" in failed.failure.message
    jobs.start("h-2", "experiment", bug)
    failed = ended(jobs, "h-2").failure
    assert failed is not None and failed.of == "internal" and "secret" not in failed.message
    name = failed.message.split()[2].rstrip(":")
    assert any(name in record.getMessage() and record.exc_info for record in caplog.records)


def test_after_shutdown_nothing_starts() -> None:
    jobs = Jobs()
    jobs.start("baseline", "baseline", until_stopped)
    assert jobs.shutdown(10)
    with pytest.raises(Refused, match="shutting down"):
        jobs.start("h-1", "experiment", until_stopped)


def test_shutdown_is_bounded() -> None:
    jobs, release = Jobs(), threading.Event()
    jobs.start("h-1", "experiment", lambda report, cancel: release.wait(10))
    began = time.monotonic()
    assert not jobs.shutdown(0.1)
    assert time.monotonic() - began < 5
    release.set()
