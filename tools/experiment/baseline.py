"""The endpoint as it is: where its capacity lies, and how much identical runs differ."""

from __future__ import annotations

import math
import statistics
import threading
from typing import Literal

from ..contract.base import Scalar
from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint
from ..contract.errors import Refused
from ..contract.run import RunRecord
from ..contract.series import Series
from ..contract.verdict import NoiseFloor
from ..ledger.campaigns import open_series
from ..ledger.floors import record_floor
from ..traffic.walk import ladder_around
from .bench import Bench
from .identity import hardware_identity, model_identity
from .policy import at_clock, policy_of
from .runner import Hear, Runner
from .views import Progress

PILOTS = 4
"""Pilot launches at most: each starts from where the one before it saw the capacity's side."""


def series_for(endpoint: Endpoint, *, workload: str, build: str, window: Literal["explore", "held_out"], ladder: tuple[float, ...], reference: float, short: bool = False, mode: str | None = None) -> Series:
    """The identity of all runs measured in this way. `reference` in requests/s of all devices together."""
    from ..serving.cores import split_cores

    return Series(
        workload=workload,
        workload_class=endpoint.workload.workload_class,
        window=window,
        ladder=ladder,
        reference_capacity=reference,
        sla=endpoint.sla,
        hardware=hardware_identity(endpoint, split_cores(endpoint)),
        gpus=endpoint.hardware.gpus,
        engine=endpoint.engine.kind,
        engine_build=build,
        model=model_identity(endpoint),
        policy=policy_of(endpoint, short=short, mode=mode),
    )


def pilot(runner: Runner, bench: Bench, configuration: Configuration, workload: str, guess: float, hear: Hear, cancel: threading.Event) -> tuple[RunRecord, float]:
    """Find the capacity's place on the trace's first part, from a guess in requests/s, and the clock that this machine can keep. Never evidence.

    Returns the record and the clock. An embedded engine whose client or own steps can't keep up with a fast clock is tried again at half of it, down to 1.
    Raises `EngineFailure`, `Refused`.
    """
    build, endpoint = bench.build(), runner.endpoint
    tries = 0
    while tries < PILOTS:
        series = series_for(endpoint, workload=workload, build=build, window="explore", ladder=ladder_around(guess, endpoint.measurement.ladder_step), reference=guess, short=True)
        open_series(runner.project, runner.campaign, series)
        record = runner.run(bench, kind="pilot", arm="baseline", pair=tries, series=series, configuration=configuration, hear=hear, cancel=cancel)
        assert record.measurement is not None
        capacity, invalid, clock = record.measurement.capacity, record.measurement.invalid, endpoint.measurement.clock
        if invalid and clock > 1:
            endpoint = at_clock(endpoint, max(1.0, clock / 2))
            hear(Progress(phase="pilot", message=f"{invalid[0]}; trying again at clock {endpoint.measurement.clock:g} instead of {clock:g}"))
            continue
        if capacity.censored is None:
            return record, clock
        tries += 1
        guess = capacity.rps_per_gpu * endpoint.hardware.gpus * (4.0 if capacity.censored == "above" else 0.25)
    raise Refused(f"no rate was found at which the SLA just holds (last tried around {guess:.3g} requests/s): check the sla against what one idle request takes")


def floor(runner: Runner, bench: Bench, series: Series, configuration: Configuration, hear: Hear, cancel: threading.Event) -> tuple[NoiseFloor, list[RunRecord]]:
    """Identical runs of the baseline, recorded as the series' noise floor. One more is made for each that can't be used, at most as many again."""
    wanted = runner.endpoint.measurement.floor_runs
    records: list[RunRecord] = []
    for number in range(2 * wanted):
        if sum(usable(record) for record in records) >= wanted:
            break
        record = runner.run(bench, kind="floor", arm="baseline", pair=number, series=series, configuration=configuration, hear=hear, cancel=cancel)
        records.append(record)
    if sum(usable(record) for record in records) < 2:
        raise Refused(f"the baseline can't be measured well enough to judge anything by: {len(records)} runs, of which {sum(map(usable, records))} are fit. {unfit(records)}")
    return record_floor(runner.project, runner.campaign, series.id()), records


def unfit(records: list[RunRecord]) -> str:
    """Why runs can't be used, and what a user can do about it."""
    measured = [record.measurement for record in records if record.measurement is not None]
    if invalid := [reason for m in measured for reason in m.invalid]:
        return f"Last reason: {invalid[-1]}. Give engine and client cores of their own, let nothing else run beside them, or (engine sim) lower measurement.clock."
    sides = {m.capacity.censored for m in measured if m.capacity.censored}
    return f"The capacity lies {' or '.join(sorted(sides))} the ladder of rates: choose other measurement.rates, or leave them out to have them found." if sides else ""


def usable(record: RunRecord) -> bool:
    return record.measurement is not None and not record.measurement.invalid and record.measurement.capacity.censored is None


def middle(records: list[RunRecord]) -> dict[str, Scalar]:
    """Median of every numeric observable over the runs that have it; other values from the first run."""
    values: dict[str, list[Scalar]] = {}
    for record in records:
        for name, value in (record.measurement.observables if record.measurement else {}).items():
            values.setdefault(name, []).append(value)
    return {name: _median(found) for name, found in sorted(values.items())}


def _median(found: list[Scalar]) -> Scalar:
    numbers = [float(v) for v in found if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(numbers) != len(found):
        return found[0]
    middle = statistics.median(numbers)
    return int(middle) if all(isinstance(v, int) for v in found) and math.isclose(middle, round(middle)) else middle
