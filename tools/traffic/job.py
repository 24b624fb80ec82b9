"""What a replay is asked to do, and what it says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from ..contract.base import Contract
from ..contract.endpoint import CachePolicy
from ..contract.run import ClientReport
from ..contract.sla import SLA


class ReplayJob(Contract):
    """One climb up a ladder of rates. All times and rates are in server seconds (wall seconds times `clock`)."""

    url: str
    model: str
    workload: str
    """A frozen workload file."""
    window: Literal["explore", "held_out"] = "explore"
    rates: tuple[float, ...] = Field(min_length=1)
    """Requests per server second, ascending."""
    reference_capacity: float | None = Field(default=None, gt=0)
    climb: bool = False
    """True: walk the ladder by `walk.next_step` (needs the reference); False: run every rate, ascending."""
    sla: SLA | None = None
    """For `climb` and the progress; None: every answer that came to its end counts."""
    window_s: float = Field(gt=0)
    warmup_s: float = Field(default=0, ge=0)
    drain_s: float = Field(default=20, gt=0)
    clock: float = Field(default=1, ge=1)
    cache_policy: CachePolicy = "steady"
    reset_path: str | None = None
    """POST here empties the prefix cache. Without it, `cold` and `warmed` give every step prompts of its own, where prompts are token ids."""
    cores: tuple[int, ...] | None = None
    rows: str
    """Parquet file to write."""
    request_timeout_s: float | None = Field(default=None, gt=0)

    @field_validator("rates")
    @classmethod
    def _ascending(cls, rates: tuple[float, ...]) -> tuple[float, ...]:
        if list(rates) != sorted(set(rates)) or rates[0] <= 0:
            raise ValueError("positive rates, ascending, none twice")
        return rates


    @model_validator(mode="after")
    def _walkable(self) -> ReplayJob:
        if self.climb and self.reference_capacity is None:
            raise ValueError("climb needs reference_capacity")
        return self


class ReplayProgress(Contract):
    """Where a replay stands. `step` is the index of the rate among `steps`; a walk doesn't visit them all. `attainment`: share of the requests that have ended which kept the SLA; `lateness_s`: the worst of the step so far."""

    step: int
    steps: int
    offered_rps: float
    planned: int
    sent: int
    ended: int
    ok: int
    attainment: float | None
    lateness_s: float
    step_done: bool = False


class ReplayResult(Contract):
    rows: str | None
    """The Parquet file; None when no step came to its end."""
    client: ClientReport | None
    wall_s: float
    error: str | None = None
    """Why the ladder could not be finished, where it wasn't."""
    stopped_at: Literal["end", "server_gone", "cancelled", "error"]
    """end: all steps that are due ran; server_gone: nothing listens any more; cancelled: on demand; error: see `error`."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures should know."""

    def path(self) -> Path | None:
        return Path(self.rows) if self.rows else None
