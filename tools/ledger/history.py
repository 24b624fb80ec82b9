"""Runs as their entries tell them, and what they have cost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..contract.base import Contract
from ..contract.errors import Refused
from ..contract.run import RunKind
from ..contract.series import Series
from .ledger import Entry
from .owner import Owner
from .project import Project
from .records import RunAborted, RunFinished, RunReserved, RunStarted
from .store import StorageFailure

RunStatus = Literal["reserved", "running", "finished", "aborted"]


@dataclass(frozen=True)
class Run:
    """A run as its entries tell it. `finished` is there exactly when `status` is finished."""

    id: str
    status: RunStatus
    reserved: RunReserved
    owner: Owner
    started_at: datetime | None = None
    finished: RunFinished | None = None
    aborted: RunAborted | None = None


class Spent(Contract):
    """What a campaign's runs have cost, aborted attempts included, in wall seconds."""

    launches: int
    replay_s: float
    wall_s: float
    """From allocation to teardown, summed over runs. (How long the campaign itself has been at work, only the driver knows.)"""


def runs(project: Project, *, campaign: str | None = None, experiment: str | None = None, kind: RunKind | None = None) -> list[Run]:
    """All attempts, in the order of their reservation."""
    entries = project.ledger.entries("run_reserved", "run_started", "run_finished", "run_aborted", campaign=campaign)
    by_run: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        by_run.setdefault(str(entry.key), {})[entry.kind] = entry
    if lost := [name for name, parts in by_run.items() if "run_reserved" not in parts]:
        raise StorageFailure(f"the record is damaged: run {lost[0]} was never reserved")
    return [_assemble(name, parts) for name, parts in by_run.items() if _matches(parts["run_reserved"], experiment, kind)]


def get_run(project: Project, run_id: str) -> Run:
    """Raises `Refused` when there is none."""
    parts = {entry.kind: entry for entry in project.ledger.entries("run_reserved", "run_started", "run_finished", "run_aborted", key=run_id)}
    if "run_reserved" not in parts:
        raise Refused(f"run {run_id} isn't reserved; no run is recorded without a reservation")
    return _assemble(run_id, parts)


def spent(project: Project, campaign: str) -> Spent:
    """A running attempt counts as a launch, with its walls so far."""
    launches, replay_s, wall_s = 0, 0.0, 0.0
    for run in runs(project, campaign=campaign):
        launches += run.started_at is not None and run.reserved.launches
        ended = run.finished or run.aborted
        if ended is not None:
            replay_s, wall_s = replay_s + ended.replay_wall_s, wall_s + ended.wall_s
        elif run.started_at is not None:
            wall_s += max(0.0, last_sign(project, run) - run.started_at.timestamp())
    return Spent(launches=launches, replay_s=replay_s, wall_s=wall_s)


def series_of(project: Project, run: Run) -> Series | None:
    """The run's series; None for a run without one."""
    entry = project.ledger.find("series_opened", run.reserved.series) if run.reserved.series else None
    return entry and Series.model_validate(entry.body["series"])


def last_sign(project: Project, run: Run) -> float:
    """Seconds since the epoch of the run's last heartbeat; now for a run of this very process."""
    if run.owner == Owner.me():
        return time.time()
    try:
        return project.heartbeat(run.id).stat().st_mtime
    except FileNotFoundError:
        return run.started_at.timestamp() if run.started_at else time.time()


def _matches(reserved: Entry, experiment: str | None, kind: RunKind | None) -> bool:
    return (experiment is None or reserved.body["experiment"] == experiment) and (kind is None or reserved.body["kind"] == kind)


def _assemble(run_id: str, parts: dict[str, Entry]) -> Run:
    reserved = RunReserved.model_validate(parts["run_reserved"].body)
    started, finished, aborted = parts.get("run_started"), parts.get("run_finished"), parts.get("run_aborted")
    status: RunStatus = "finished" if finished else "aborted" if aborted else "running" if started else "reserved"
    return Run(
        id=run_id,
        status=status,
        reserved=reserved,
        owner=RunStarted.model_validate(started.body).owner if started else reserved.owner,
        started_at=datetime.fromisoformat(started.at) if started else None,
        finished=RunFinished.model_validate(finished.body) if finished else None,
        aborted=RunAborted.model_validate(aborted.body) if aborted else None,
    )
