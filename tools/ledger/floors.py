"""The noise floor as recorded: always over all floor runs of the series that can be used, never over chosen ones."""

from __future__ import annotations

from collections.abc import Sequence

from ..contract.errors import Refused
from ..contract.verdict import NoiseFloor
from .campaigns import require_open
from .evidence import measure_again
from .history import Run, runs
from .project import Project
from .records import FloorRecorded


def record_floor(project: Project, campaign: str, series: str) -> NoiseFloor:
    """Compute the floor of the series from the raw rows of the campaign's floor runs, its spread pooled with other campaigns'
    floor runs and with the baseline arms of experiments confirmed in the series, and record it. One equal to the last isn't written again.

    Raises `Refused` when fewer than two floor runs can be used.
    """
    with project.ledger.transaction():
        require_open(project, campaign)
        every = [run for run in runs(project) if run.status == "finished" and run.reserved.series == series]
        floor_runs = [run for run in every if run.reserved.kind == "floor"]
        left_out = {run.id: why for run in floor_runs if (why := unusable(run))}
        names = tuple(run.id for run in floor_runs if run.id not in left_out and run.reserved.campaign == campaign)
        if len(names) < 2:
            reasons = "; ".join(f"{name}: {why}" for name, why in left_out.items())
            raise Refused(f"series {series}: a noise floor needs two usable floor runs, there are {len(names)}" + (f" ({reasons})" if reasons else ""))
        pooled = _groups(every, apart=frozenset(names))
        body = FloorRecorded(
            campaign=campaign, series=series, floor=compute_floor(project, every, names, pooled), runs=names, pooled=pooled, left_out=left_out
        )
        previous = [entry for entry in project.ledger.entries("floor", campaign=campaign) if entry.body["series"] == series]
        if not previous or FloorRecorded.model_validate(previous[-1].body) != body:
            project.ledger._write("floor", body)
    return body.floor


def _groups(every: Sequence[Run], apart: frozenset[str]) -> tuple[tuple[str, ...], ...]:
    """Usable baseline runs, in groups that share a configuration and were made together; a group of one says nothing of spread."""
    groups: dict[tuple[str, str | None], list[str]] = {}
    for run in every:
        is_baseline = run.reserved.kind in ("floor", "confirm", "stack") and run.reserved.arm == "baseline"
        if is_baseline and run.id not in apart and not unusable(run):
            groups.setdefault((run.reserved.campaign, run.reserved.experiment), []).append(run.id)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def unusable(run: Run) -> str:
    """Why a finished run can't be part of a noise floor; empty when it can."""
    ended = run.finished
    if ended is None or ended.measurement is None:
        return ended.failure.line if ended and ended.failure else "no measurement"
    if ended.measurement.invalid:
        return ended.measurement.invalid[0]
    censored = ended.measurement.capacity.censored
    return f"capacity is {censored} the ladder, so only a bound" if censored else ""


def compute_floor(project: Project, every: Sequence[Run], names: Sequence[str], pooled: Sequence[Sequence[str]]) -> NoiseFloor:
    """The floor over the named runs, their capacities measured again from raw rows."""
    from ..judgement.floor import noise_floor

    by_id = {run.id: run for run in every}

    def capacity(name: str) -> float:
        measurement = measure_again(project, by_id[name])
        if measurement is None:
            raise Refused(f"run {name} has no measurement")
        return measurement.capacity.rps_per_gpu

    return noise_floor([capacity(name) for name in names], [[capacity(name) for name in group] for group in pooled])
