"""A run's life: reserved -> running -> finished | aborted. A finished one is never repeated, an aborted one never taken back."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from ..contract.base import canonical
from ..contract.configuration import Configuration
from ..contract.errors import Refused
from ..contract.run import RunArtifacts, RunKind
from .campaigns import plan as registered_plan
from .campaigns import require_open
from .evidence import measure_rows
from .history import Run, get_run, last_sign, runs, series_of
from .owner import Owner
from .project import Project
from .records import RunAborted, RunFinished, RunReserved, RunStarted


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
        _allowed(project, body)
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
        wall_s = max(0.0, last_sign(project, run) - run.started_at.timestamp()) if run.started_at else 0.0
        project.ledger._write("run_aborted", RunAborted(campaign=run.reserved.campaign, run=run_id, why=why, wall_s=wall_s), key=run_id)
    project.heartbeat(run_id).unlink(missing_ok=True)


def abort_dead(project: Project, campaign: str) -> list[str]:
    """Abort whatever processes left behind that are gone; returns the runs' ids."""
    with project.ledger.transaction():
        dead = [run for run in runs(project, campaign=campaign) if run.status in ("reserved", "running") and not run.owner.alive()]
        for run in dead:
            abort(project, run.id, f"process {run.owner.pid} ended while the run was {run.status}")
    return [run.id for run in dead]


def _allowed(project: Project, wanted: RunReserved) -> None:
    """The rules for a new attempt."""
    require_open(project, wanted.campaign)
    experiment = wanted.experiment
    if wanted.series is not None and project.ledger.find("series_opened", wanted.series) is None:
        raise Refused(f"series {wanted.series} isn't opened")
    if (experiment is None) != (wanted.kind in ("pilot", "floor")):
        raise Refused(f"a {wanted.kind} run belongs to {'no experiment' if experiment else 'an experiment'}")
    if experiment is None:
        others = [run.reserved for run in runs(project, campaign=wanted.campaign, kind="floor") if run.reserved.series == wanted.series]
        if wanted.kind == "floor" and any(other.configuration != wanted.configuration for other in others):
            raise Refused(f"floor runs of series {wanted.series} in campaign {wanted.campaign} are of one configuration, and this is another")
        return
    plan = registered_plan(project, experiment)
    if project.ledger.find("verdict", experiment) is not None:
        raise Refused(f"experiment {experiment} has its verdict; no run can be added")
    if plan.campaign != wanted.campaign:
        raise Refused(f"experiment {experiment} is of campaign {plan.campaign}")
    if wanted.configuration != (plan.baseline if wanted.arm == "baseline" else plan.candidate):
        raise Refused(f"experiment {experiment}: the {wanted.arm} of the plan has another configuration")
    if wanted.kind in ("confirm", "stack"):
        if wanted.series != plan.series.id():
            raise Refused(f"experiment {experiment} is of series {plan.series.id()}; runs of series {wanted.series} can't be compared with it")
        ended = [run for run in runs(project, campaign=plan.campaign, experiment=experiment, kind=wanted.kind) if run.finished]
        unfit = {run.reserved.pair for run in ended if run.finished and (run.finished.measurement is None or run.finished.measurement.invalid)}
        if wanted.pair >= plan.max_pairs + len(unfit):
            raise Refused(f"experiment {experiment}: pair {wanted.pair} is beyond the {plan.max_pairs} that were registered and the {len(unfit)} that were unfit")


def _take_in(project: Project, run: Run, artifacts: RunArtifacts) -> RunFinished:
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


def _is_http(project: Project, run: Run) -> bool:
    series = series_of(project, run)
    return run.reserved.launches and series is not None and series.policy.mode == "http"


def _same_rows(project: Project, run_id: str, rows: str) -> str | None:
    return next((str(e.key) for e in project.ledger.entries("run_finished") if e.body["rows"] == rows and e.key != run_id), None)
