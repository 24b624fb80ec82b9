"""What one run gives: raw artifacts, and the figures computed from them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Contract, Scalar
from .errors import FailureKind

RunKind = Literal["pilot", "floor", "screen", "confirm", "stack"]
"""pilot: finds the ladder, never evidence; floor: baseline's natural variation; screen: cheap look, never evidence; confirm: evidence; stack: evidence on the final stack."""


class Failure(Contract):
    kind: FailureKind
    line: str
    """The line of the log that says why."""
    stage: Literal["start", "replay"]


class Probe(Contract):
    """Teacher-forced log-probabilities of frozen continuations: [probe][token] (natural log). Empty where the engine can't give them."""

    logprobs: tuple[tuple[float, ...], ...] = ()
    why_missing: str = ""


class ClientReport(Contract):
    """How the measurement client fared; judged for validity."""

    lateness_p50_s: float
    """Sent minus scheduled, in server seconds, over measured requests of all steps that were not past saturation of the server."""
    lateness_p99_s: float
    lateness_max_s: float
    cpu_share: float
    """Processor seconds a wall second of the client, over the replay; near 1.0 it was the bottleneck."""
    connections: int
    processes: int = 1


class ServerReport(Contract):
    """What the engine said of itself."""

    build: str
    effective: dict[str, Scalar]
    """Effective engine arguments as the running server reports them, by flag name with underscores."""
    counters: dict[str, float]
    """Observables of source `counters`, plus `kv_blocks` and what telemetry gave."""
    launch_s: float
    clock_lag_p99_s: float | None = None
    """Sim only: how late the engine's steps ended against its own clock, in server seconds."""
    clock_lags_p99_s: tuple[float, ...] = ()
    """The same by stretches between cache resets: the first before any, then one a ladder step, in the order of the walk."""


class RunArtifacts(Contract):
    """What a bench hands back: paths of raw files, and reports. `rows` is None when the run failed before any request."""

    rows: str | None
    log: str | None
    server: ServerReport | None
    client: ClientReport | None
    probe: Probe = Probe()
    failure: Failure | None = None
    wall_s: float
    """From asking for the launch to the engine's being gone."""
    replay_wall_s: float


class RatePoint(Contract):
    """Figures of one ladder step. Latencies in server seconds, over successful requests; None when none succeeded."""

    offered_rps: float
    requests: int
    ok: int
    within_sla: int
    attainment: float
    """within_sla / requests; failed and unfinished ones stay in the denominator."""
    goodput_rps: float
    output_tokens_per_s: float
    output_tokens_mean: float | None
    ttft_s: dict[str, float] | None
    """Keys mean, p50, p90, p99."""
    tpot_s: dict[str, float] | None
    e2e_s: dict[str, float] | None


class Capacity(Contract):
    """Requests/s per GPU. `censored`: above = the ladder's top still kept the SLA (the value is a lower bound); below = its bottom already lost it."""

    rps_per_gpu: float = Field(gt=0)
    censored: Literal["above", "below"] | None = None


class RunMeasurement(Contract):
    """All figures of one run; recomputable from its raw rows, the reports and the series."""

    run: str
    capacity: Capacity
    points: tuple[RatePoint, ...]
    observables: dict[str, Scalar]
    """Registered name (with load) -> value; what could not be measured is absent."""
    invalid: tuple[str, ...] = ()
    """Why the run is not fit to judge by: late or saturated client, server clock lag, throttling."""


class RunRecord(Contract):
    """One run as the judge sees it: who it was, and what came of it."""

    run: str
    experiment: str | None
    kind: RunKind
    arm: Literal["baseline", "candidate"]
    pair: int
    """Pairs are numbered from 0 within (experiment, kind); floor and pilot runs count up."""
    attempt: int
    configuration: str
    """Digest of the arm's configuration."""
    series: str
    measurement: RunMeasurement | None
    failure: Failure | None
    probe: Probe = Probe()
