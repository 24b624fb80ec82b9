"""Evidence made by hand: what a driver would hand to the judge."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from servewright.tools.contract.configuration import Configuration
from servewright.tools.contract.experiment import Evidence, ExperimentPlan
from servewright.tools.contract.hypothesis import Check, Hypothesis, Intervention, Prediction
from servewright.tools.contract.run import Capacity, Failure, Probe, RunMeasurement, RunRecord
from servewright.tools.contract.series import MeasurementPolicy, Series
from servewright.tools.contract.sla import SLA
from servewright.tools.contract.verdict import NoiseFloor
from servewright.tools.judgement import noise_floor

PROBE = Probe(logprobs=((-1.0, -0.5, -2.0), (-0.1, -0.2, -0.3)))
FLOOR = (10.0, 10.1, 9.95, 10.05, 9.9, 10.0)


def make_series(**change: Any) -> Series:
    policy = MeasurementPolicy(mode="http", clock=10, window_s=20, warmup_s=2, drain_s=20, cache_policy="cold", climb=True)
    fields: dict[str, Any] = {
        "workload": "w", "workload_class": "declared_synthetic", "window": "held_out", "ladder": (5.0, 10.0, 20.0), "reference_capacity": 10.0,
        "sla": SLA(ttft_s=1.0, tpot_s=0.05), "hardware": "h", "gpus": 1, "engine": "sim", "engine_build": "b", "model": "m", "policy": policy,
    }  # fmt: skip
    return Series(**(fields | change))


def make_plan(**change: Any) -> ExperimentPlan:
    baseline = Configuration(kind="sim", args={"max_num_seqs": 8})
    intervention = Intervention(set={"max_num_seqs": 64})
    hypothesis = Hypothesis(
        family="scheduling",
        title="more sequences",
        explanation="requests wait while the device has room for more sequences",
        intervention=intervention,
        prediction=Prediction(low=0.02, high=0.5),
        falsifiers=change.pop("falsifiers", (Check(observable="waiting_mean", arm="ratio", op=">", value=1.0),)),
        activation=change.pop("activation", (Check(observable="config.max_num_seqs", op="==", value=64),)),
    )
    fields: dict[str, Any] = {
        "campaign": "c", "number": 1, "purpose": "hypothesis", "hypothesis": hypothesis, "series": make_series(), "baseline": baseline,
        "candidate": baseline.apply(intervention), "alpha": 0.01, "minimum_effect": 0.05, "min_pairs": 2, "max_pairs": 6, "screen": "none",
        "seed": 1, "floor": noise_floor(FLOOR), "lossless": True,
    }  # fmt: skip
    return ExperimentPlan(**(fields | change))


class Maker:
    """Builds runs of one plan and the evidence from them."""

    def __init__(self, plan: ExperimentPlan) -> None:
        self.plan, self.runs, self.floor, self._count = plan, [], [], itertools.count()

    def run(self, arm: str, pair: int, capacity: float | None, **change: Any) -> RunRecord:
        name = f"r{next(self._count)}"
        config = {"config.max_num_seqs": 8 if arm == "baseline" else 64, "waiting_mean": 4.0 if arm == "baseline" else 1.0 + 0.01 * pair}
        observables = config | change.pop("observables", {})
        observables = {k: v for k, v in observables.items() if v is not None}
        measurement = None
        if capacity is not None:
            measurement = RunMeasurement(
                run=name, capacity=Capacity(rps_per_gpu=capacity, censored=change.pop("censored", None)), points=(), observables=observables,
                invalid=change.pop("invalid", ()),
            )  # fmt: skip
        configuration = self.plan.baseline if arm == "baseline" else self.plan.candidate
        fields: dict[str, Any] = {
            "run": name, "experiment": self.plan.id(), "kind": "stack" if self.plan.purpose == "stack" else "confirm", "arm": arm, "pair": pair,
            "attempt": 0, "configuration": configuration.digest(), "series": self.plan.series.id(), "measurement": measurement, "failure": None,
            "probe": PROBE,
        }  # fmt: skip
        return RunRecord(**(fields | change))

    def pairs(self, baseline: Sequence[float], candidate: Sequence[float], *, both: dict[str, Any] | None = None, **only_candidate: Any) -> Maker:
        for pair, (b, c) in enumerate(zip(baseline, candidate, strict=True)):
            self.runs.append(self.run("baseline", pair, b, **dict(both or {})))
            self.runs.append(self.run("candidate", pair, c, **dict(both or {}) | dict(only_candidate)))
        return self

    def floor_runs(self, **change: Any) -> Maker:
        self.floor = [self.run("baseline", i, c, kind="floor", experiment=None, **dict(change)) for i, c in enumerate(FLOOR)]
        return self

    def evidence(self, closed: bool = False) -> Evidence:
        return Evidence(plan=self.plan, runs=tuple(self.runs), baseline_probes=tuple(self.floor), closed=closed)


@pytest.fixture
def maker() -> Callable[..., Maker]:
    return lambda **change: Maker(make_plan(**change))


@pytest.fixture
def failure() -> Failure:
    return Failure(kind="out_of_memory", line="CUDA out of memory", stage="start")


@pytest.fixture
def wide_floor() -> NoiseFloor:
    return noise_floor((10.0, 12.0, 9.0, 11.0, 8.0, 10.5))
