"""A series: the runs that may be compared."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .base import Contract, digest
from .endpoint import CachePolicy, EngineKind, WorkloadClass
from .sla import SLA


class MeasurementPolicy(Contract):
    """How every run of the series is measured."""

    mode: str
    clock: float
    window_s: float
    warmup_s: float
    drain_s: float
    cache_policy: CachePolicy
    climb: bool
    """True: the ladder is walked by a frozen rule: the loads around the reference, then towards the step where the SLA is lost. False: all rates, ascending."""
    version: str = "1"
    """Of the replay and of the reading of capacity; raised when either changes what a figure means."""


class Series(Contract):
    """All that makes figures comparable. Its id is a digest of everything in it."""

    workload: str
    """Digest of the frozen workload file."""
    workload_class: WorkloadClass
    window: Literal["explore", "held_out"]
    """explore: the trace's first part; held_out: its last, which only confirmation and the noise floor use."""
    ladder: tuple[float, ...] = Field(min_length=2)
    """Offered rates in requests per server second, ascending."""
    reference_capacity: float = Field(gt=0)
    """Requests/s (of all GPUs) that the loads 0.8 ... 1.5 are multiples of; frozen when the series is opened."""
    sla: SLA
    hardware: str
    """Digest of the devices: profile, count, identifiers, cores of engine and client."""
    gpus: int = Field(ge=1)
    engine: EngineKind
    engine_build: str
    """Version and build of the engine."""
    model: str
    """Name and digest of the model's files."""
    policy: MeasurementPolicy

    def id(self) -> str:
        return "s-" + digest(self)[:12]
