"""The baseline as measured: which series, which floor, which runs."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from ..contract.base import Scalar
from ..contract.endpoint import Endpoint
from ..contract.run import RunMeasurement, RunRecord
from ..contract.series import Series
from ..contract.verdict import NoiseFloor
from ..ledger.campaigns import recorded
from ..ledger.evidence import measure_rows, record_of
from ..ledger.history import Run, runs
from ..ledger.project import Project
from ..ledger.records import FloorRecorded, SeriesOpened


@dataclass(frozen=True)
class Measured:
    series: Series
    floor: NoiseFloor
    runs: list[RunRecord]
    """The floor runs."""
    evidence: list[RunRecord]
    """What models may reason from: the pilot's figures on the trace's first part, at loads of its own capacity; the floor runs where there was no pilot."""
    effective: dict[str, Scalar]
    wall_s: float
    """Mean wall seconds of a floor run, from launch to teardown."""
    replay_s: float

    @property
    def capacity(self) -> float:
        """Median over the floor runs that can be used, requests/s/GPU."""
        return statistics.median(self.floor.values)


def measured(project: Project, campaign: str, endpoint: Endpoint) -> Measured | None:
    """None while the campaign has no noise floor."""
    floors = recorded(project, "floor", FloorRecorded, campaign)
    if not floors:
        return None
    first = floors[0]
    series = {opened.series.id(): opened.series for opened in recorded(project, "series_opened", SeriesOpened)}
    finished = [run for run in runs(project) if run.status == "finished"]
    mine = [run for run in finished if run.id in first.runs]
    walls = [(run.finished.wall_s, run.finished.replay_wall_s) for run in mine if run.finished]
    servers = [run.finished.server for run in mine if run.finished and run.finished.server]
    records = [_record(run) for run in mine]
    pilots = [run for run in finished if run.reserved.kind == "pilot" and run.reserved.campaign == campaign]
    return Measured(
        series=series[first.series],
        floor=floors[-1].floor,
        runs=records,
        evidence=[_pilot(project, pilots[-1], series, series[first.series].reference_capacity)] if pilots else records,
        effective=servers[0].effective if servers else {},
        wall_s=statistics.fmean(wall for wall, _ in walls),
        replay_s=statistics.fmean(replay for _, replay in walls),
    )


def _record(run: Run) -> RunRecord:
    """As measured when the run ended; verdicts and `verify` measure again from the rows, a summary need not."""
    return record_of(run, run.finished.measurement if run.finished else None)


def _pilot(project: Project, run: Run, series: dict[str, Series], reference: float) -> RunRecord:
    """The pilot's rows, read at loads of the capacity that it found."""
    record, ended = _record(run), run.finished
    if ended is None or ended.rows is None or ended.server is None or ended.client is None or run.reserved.series is None:
        return record
    key = (str(project.folder), run.id, reference)
    if key not in _read:
        frame = series[run.reserved.series].model_copy(update={"reference_capacity": reference})
        _read[key] = measure_rows(project, ended.rows, run=run.id, series=frame, server=ended.server, client=ended.client)
    return record.model_copy(update={"measurement": _read[key]})


_read: dict[tuple[str, str, float], RunMeasurement] = {}
"""Pilots read before, by project, run and reference: every view of a campaign asks for one, and its rows never change."""
