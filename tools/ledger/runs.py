"""A run's life: reserved -> running -> finished | aborted. A finished one is never repeated, an aborted one never taken back."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from ..contract.base import Contract, canonical
from ..contract.configuration import Configuration
from ..contract.errors import Refused
from ..contract.run import RunArtifacts, RunKind
from ..contract.series import Series
from .campaigns import plan as registered_plan
from .campaigns import require_open
from .evidence import measure_rows
from .ledger import Entry
from .owner import Owner
from .project import Project
from .records import RunAborted, RunFinished, RunReserved, RunStarted

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


def reserve(
    project: Project,
    *,
    campaign: str,
    kind: RunKind,
    arm: Literal["baseline", "candidate"],
    pair: int,
    configuration: Configuration,
    experiment: str | None = None,
    series: str | None = None,
    launches: bool = True,
) -> Run:
    """The run for this key: a finished one when it has been done already, else a reservation to be started.

    An attempt whose process is gone is aborted, and the next one reserved. Raises `Refused` when the key is being measured by a living
    process, was measured with other settings, or breaks the experiment's plan.
    """
    with project.ledger.transaction():
        attempts = [r for r in runs(project, campaign=campaign, experiment=experiment, kind=kind) if (r.reserved.arm, r.reserved.pair) == (arm, pair)]
        attempts = [r for r in attempts if experiment is not None or (r.reserved.experiment is None and r.reserved.series == series)]
        for run in attempts:
            if run.status != "aborted" and (run.reserved.configuration, run.reserved.series) != (configuration, series):
                raise Refused(f"run {run.id} ({kind} {pair}, {arm}) is of another configuration or series; its key can't be used again")
            if run.status == "finished":
                return run
        if attempts and attempts[-1].status != "aborted":
            last = attempts[-1]
            if last.owner == Owner.me() and last.status == "reserved":
                return last
            if last.owner.alive():
                raise Refused(f"run {last.id} is being measured by process {last.owner.pid}; wait for it, or end that process and resume")
            abort(project, last.id, f"process {last.owner.pid} ended while the run was {last.status}")
        _allowed(project, campaign, experiment, kind, arm, pair, configuration, series)
        body = RunReserved(
            campaign=campaign,
            experiment=experiment,
            kind=kind,
            arm=arm,
            pair=pair,
            attempt=len(attempts),
            series=series,
            configuration=configuration,
            launches=launches,
            owner=Owner.me(),
        )
        project.ledger._write("run_reserved", body, key=body.id())
        return get_run(project, body.id())


def start(project: Project, run_id: str) -> Run:
    """The launch begins now; from here on the run costs budget."""
    with project.ledger.transaction():
        run = get_run(project, run_id)
        if run.status != "reserved":
            raise Refused(f"run {run_id} is {run.status}; only a reserved one can be started")
        project.ledger._write("run_started", RunStarted(campaign=run.reserved.campaign, run=run_id, owner=Owner.me()), key=run_id)
    beat(project, run_id)
    return get_run(project, run_id)


def beat(project: Project, run_id: str) -> None:
    """A sign of life; say it every few seconds. Not part of the chain."""
    path = project.heartbeat(run_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def finish(project: Project, run_id: str, artifacts: RunArtifacts) -> Run:
    """Take in what the bench handed back: raw files into the store, figures computed from them. Idempotent.

    A run that failed (`artifacts.failure`) is finished too: it is an outcome, and is never repeated.
    """
    run = get_run(project, run_id)
    if run.status == "finished":
        return run
    if run.status != "running":
        raise Refused(f"run {run_id} is {run.status}; only a running one can be finished")
    body = _take_in(project, run, artifacts)
    with project.ledger.transaction():
        if (status := get_run(project, run_id).status) not in ("running", "finished"):
            raise Refused(f"run {run_id} was {status} meanwhile; its result is not taken")
        if body.rows is not None and _is_http(project, run) and (twin := _same_rows(project, run_id, body.rows)):
            raise Refused(f"run {run_id}: its rows are those of run {twin}, byte for byte; two real replays are never the same")
        project.ledger._write("run_finished", body, key=run_id)
    project.heartbeat(run_id).unlink(missing_ok=True)
    return get_run(project, run_id)


def abort(project: Project, run_id: str, why: str) -> None:
    """Give the attempt up: it stays, costs what it has cost, and is no evidence. Does nothing when it is aborted already."""
    with project.ledger.transaction():
        run = get_run(project, run_id)
        if run.status == "aborted":
            return
        if run.status == "finished":
            raise Refused(f"run {run_id} is finished; it counts and can't be left out")
        wall_s = max(0.0, _last_sign(project, run) - run.started_at.timestamp()) if run.started_at else 0.0
        project.ledger._write("run_aborted", RunAborted(campaign=run.reserved.campaign, run=run_id, why=why, wall_s=wall_s), key=run_id)
    project.heartbeat(run_id).unlink(missing_ok=True)


def abort_dead(project: Project, campaign: str) -> list[str]:
    """Abort whatever processes left behind that are gone; returns the runs' ids."""
    with project.ledger.transaction():
        dead = [run for run in runs(project, campaign=campaign) if run.status in ("reserved", "running") and not run.owner.alive()]
        for run in dead:
            abort(project, run.id, f"process {run.owner.pid} ended while the run was {run.status}")
    return [run.id for run in dead]


def runs(project: Project, *, campaign: str | None = None, experiment: str | None = None, kind: RunKind | None = None) -> list[Run]:
    """All attempts, in the order of their reservation."""
    entries = project.ledger.entries("run_reserved", "run_started", "run_finished", "run_aborted", campaign=campaign)
    by_run: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        by_run.setdefault(str(entry.key), {})[entry.kind] = entry
    found = (_assemble(run_id, parts) for run_id, parts in by_run.items() if _matches(parts["run_reserved"], experiment, kind))
    return list(found)


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
            wall_s += max(0.0, _last_sign(project, run) - run.started_at.timestamp())
    return Spent(launches=launches, replay_s=replay_s, wall_s=wall_s)


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


def _allowed(
    project: Project, campaign: str, experiment: str | None, kind: RunKind, arm: str, pair: int, configuration: Configuration, series: str | None
) -> None:
    require_open(project, campaign)
    if series is not None and project.ledger.find("series_opened", series) is None:
        raise Refused(f"series {series} isn't opened")
    if (experiment is None) != (kind in ("pilot", "floor")):
        raise Refused(f"a {kind} run belongs to {'no experiment' if experiment else 'an experiment'}")
    if experiment is None:
        return
    plan = registered_plan(project, experiment)
    if project.ledger.find("verdict", experiment) is not None:
        raise Refused(f"experiment {experiment} has its verdict; no run can be added")
    if plan.campaign != campaign:
        raise Refused(f"experiment {experiment} is of campaign {plan.campaign}")
    if configuration != (plan.baseline if arm == "baseline" else plan.candidate):
        raise Refused(f"experiment {experiment}: the {arm} of the plan has another configuration")
    if kind in ("confirm", "stack"):
        if series != plan.series.id():
            raise Refused(f"experiment {experiment} is of series {plan.series.id()}; runs of series {series} can't be compared with it")
        if pair >= plan.max_pairs:
            raise Refused(f"experiment {experiment}: pair {pair} is beyond the {plan.max_pairs} that were registered")


def _take_in(project: Project, run: Run, artifacts: RunArtifacts) -> RunFinished:
    from pathlib import Path

    store, series = project.store, series_of(project, run)
    rows = store.put(Path(artifacts.rows)) if artifacts.rows else None
    measurement = None
    if artifacts.failure is None:
        if rows is None or artifacts.server is None or artifacts.client is None:
            raise Refused(f"run {run.id}: a run without failure must hand back rows and both reports")
        if series is not None:
            measurement = measure_rows(project, rows, run=run.id, series=series, server=artifacts.server, client=artifacts.client)
    return RunFinished(
        campaign=run.reserved.campaign,
        run=run.id,
        rows=rows,
        log=store.put(Path(artifacts.log)) if artifacts.log else None,
        probe=store.put(canonical(artifacts.probe)),
        server=artifacts.server,
        client=artifacts.client,
        failure=artifacts.failure,
        wall_s=artifacts.wall_s,
        replay_wall_s=artifacts.replay_wall_s,
        measurement=measurement,
    )


def series_of(project: Project, run: Run) -> Series | None:
    """The run's series; None for a run without one."""
    entry = project.ledger.find("series_opened", run.reserved.series) if run.reserved.series else None
    return entry and Series.model_validate(entry.body["series"])


def _is_http(project: Project, run: Run) -> bool:
    series = series_of(project, run)
    return run.reserved.launches and series is not None and series.policy.mode == "http"


def _same_rows(project: Project, run_id: str, rows: str) -> str | None:
    return next((str(e.key) for e in project.ledger.entries("run_finished") if e.body["rows"] == rows and e.key != run_id), None)


def _last_sign(project: Project, run: Run) -> float:
    if run.owner == Owner.me():
        return time.time()
    try:
        return project.heartbeat(run.id).stat().st_mtime
    except FileNotFoundError:
        return run.started_at.timestamp() if run.started_at else time.time()
