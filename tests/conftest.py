"""A small campaign with hand-made rows: figures follow from the capacity that a test asks for."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from hypothesis import settings

from servewright.tools.contract.configuration import Configuration
from servewright.tools.contract.endpoint import Endpoint
from servewright.tools.contract.experiment import ExperimentPlan
from servewright.tools.contract.hypothesis import Hypothesis
from servewright.tools.contract.rows import ROW_SCHEMA
from servewright.tools.contract.run import ClientReport, Failure, Probe, RunArtifacts, ServerReport
from servewright.tools.contract.series import MeasurementPolicy, Series
from servewright.tools.contract.sla import SLA
from servewright.tools.ledger import campaigns, floors, runs
from servewright.tools.ledger.project import Project
from servewright.tools.ledger.seals import SealBook

settings.register_profile("servewright", deadline=None)  # a busy machine is no failure
settings.load_profile("servewright")

LADDER = (4.0, 6.0, 8.0, 12.0, 16.0)
BASE = Configuration(kind="sim", args={"max_num_seqs": 8})


def rows(capacity: float, seed: int, warmup_s: float = 2.0, window_s: float = 20.0) -> pl.DataFrame:
    """TTFT grows with the cube of the offered rate, and is the SLA's bound of 1 s at `capacity`: the ladder then reads exactly that."""
    noise, steps = np.random.default_rng(seed), []
    for index, rate in enumerate(LADDER):
        count = round(rate * (warmup_s + window_s))
        scheduled = np.arange(count) / rate
        first = scheduled + (rate / capacity) ** 3 * (1 - 0.01 * noise.random(count))
        times = {"scheduled_s": scheduled, "sent_s": scheduled + 0.0005, "first_s": first, "last_s": first + 1, "end_s": first + 1}
        whole = {"rate_index": index, "offered_rps": rate, "status": "ok", "http_status": 200, "finish_reason": "length", "prompt_tokens": 100, "cached_tokens": 0}
        whole |= {"output_tokens": 21, "expected_prompt_tokens": 100, "expected_output_tokens": 21, "chunks": 21, "text_sha": "0" * 16, "error": None}
        step = pl.DataFrame({**times, "request": np.arange(count), "phase": np.where(scheduled < warmup_s, "warmup", "measure")})
        steps.append(step.with_columns(**{name: pl.lit(value) for name, value in whole.items()}))
    return pl.concat(steps).select(pl.col(name).cast(getattr(pl, dtype)) for name, dtype in ROW_SCHEMA.items())


class Campaign:
    """A project with an open campaign, and short ways to do what the driver does."""

    def __init__(self, folder: Path, thread: str = "c1") -> None:
        self.folder, self.thread = folder, thread
        self.project = Project(folder / ".servewright")
        trace = folder / "trace.jsonl"
        trace.touch()
        self.endpoint = Endpoint.model_validate(
            {
                "name": "demo",
                "engine": {"kind": "sim", "args": dict(BASE.args)},
                "model": {"name": "llama-3.1-8b"},
                "hardware": {"profile": "h100-sxm"},
                "sla": {"ttft_s": 1.0, "attainment": 0.9},
                "workload": {"trace": str(trace)},
            }
        )
        self.series = Series(
            workload="0" * 64,
            workload_class="declared_synthetic",
            window="held_out",
            ladder=LADDER,
            reference_capacity=8.0,
            sla=SLA(ttft_s=1.0, attainment=0.9),
            hardware="h",
            gpus=1,
            engine="sim",
            engine_build="sim-1",
            model="llama-3.1-8b",
            policy=MeasurementPolicy(mode="http", clock=1, window_s=20, warmup_s=2, drain_s=20, cache_policy="cold", climb=False),
        )
        self.book = SealBook(folder / "sealed.json")
        self._made = 0
        campaigns.open_campaign(self.project, thread, self.endpoint, seed=1, versions={"servewright": "0.1.0"})
        campaigns.open_series(self.project, thread, self.series)

    def artifacts(self, capacity: float, seqs: int = 8, *, shift: float = 0.0, failure: Failure | None = None) -> RunArtifacts:
        self._made += 1
        path, log = self.folder / f"{self._made}.parquet", self.folder / f"{self._made}.log"
        rows(capacity, self._made).write_parquet(path)
        log.write_text(f"engine {self._made} started\n")
        noise = random.Random(self._made)
        return RunArtifacts(
            rows=None if failure else str(path),
            log=str(log),
            server=None if failure else ServerReport(build="sim-1", effective={"max_num_seqs": seqs}, counters={"preemptions": 0.0}, launch_s=0.5),
            client=None if failure else ClientReport(lateness_p50_s=0.0005, lateness_p99_s=0.001, lateness_max_s=0.002, cpu_share=0.2, connections=8),
            probe=Probe(logprobs=tuple(tuple(-1.0 + shift + noise.gauss(0, 1e-4) for _ in range(8)) for _ in range(3))),
            failure=failure,
            wall_s=3.0,
            replay_wall_s=2.0,
        )

    def run(self, kind: str, arm: str, pair: int, artifacts: RunArtifacts, **key: object) -> runs.Run:
        run = runs.reserve(self.project, campaign=self.thread, kind=kind, arm=arm, pair=pair, series=self.series.id(), **key)  # type: ignore[arg-type]
        if run.status == "finished":
            return run
        runs.start(self.project, run.id)
        return runs.finish(self.project, run.id, artifacts)

    def floor(self, capacities: tuple[float, ...] = (8.0, 8.1, 7.95)) -> None:
        for pair, capacity in enumerate(capacities):
            self.run("floor", "baseline", pair, self.artifacts(capacity), configuration=BASE)
        self.noise = floors.record_floor(self.project, self.thread, self.series.id())

    def hypothesis(self, seqs: int = 16) -> Hypothesis:
        return Hypothesis.model_validate(
            {
                "family": "scheduling",
                "title": f"more sequences ({seqs})",
                "explanation": "requests wait although memory is free: running_max equals max_num_seqs",
                "intervention": {"set": {"max_num_seqs": seqs}},
                "prediction": {"low": 0.1, "high": 0.6},
                "falsifiers": [{"observable": "capacity_rps_per_gpu", "arm": "ratio", "op": "<", "value": 1.0}],
                "activation": [{"observable": "config.max_num_seqs", "op": "==", "value": seqs}],
            }
        )

    def plan(self, number: int = 1, seqs: int = 16, **changes: object) -> ExperimentPlan:
        """A proposed hypothesis and its plan, not yet registered."""
        hypothesis = self.hypothesis(seqs)
        name = campaigns.hypothesis_id(self.thread, hypothesis)
        campaigns.propose(self.project, self.thread, hypothesis, lossless=True, seal=self.book.seal(name, "genuine"))
        fields = {"campaign": self.thread, "number": number, "purpose": "hypothesis", "hypothesis": hypothesis, "series": self.series, "baseline": BASE}
        fields |= {"candidate": BASE.apply(hypothesis.intervention), "alpha": 0.01, "minimum_effect": 0.05, "min_pairs": 2, "max_pairs": 6}
        fields |= {"screen": "none", "seed": 3, "floor": self.noise, "lossless": True}
        return ExperimentPlan.model_validate(fields | changes)

    def pair(self, plan: ExperimentPlan, pair: int, baseline: float, candidate: float, *, shift: float = 0.0, effective: int | None = None) -> None:
        seqs = int(plan.candidate.args["max_num_seqs"]) if effective is None else effective
        self.run("confirm", "baseline", pair, self.artifacts(baseline), experiment=plan.id(), configuration=plan.baseline)
        self.run("confirm", "candidate", pair, self.artifacts(candidate, seqs, shift=shift), experiment=plan.id(), configuration=plan.candidate)


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return Campaign(tmp_path)


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """Names that tests need from here (test folders are no packages)."""
    return SimpleNamespace(rows=rows, BASE=BASE, Campaign=Campaign)
