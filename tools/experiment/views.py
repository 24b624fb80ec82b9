"""What a campaign tells others: summaries and ids, never rows."""

from __future__ import annotations

from typing import Literal

from ..contract.base import Contract, Scalar
from ..contract.configuration import Configuration
from ..contract.endpoint import Family
from ..contract.hypothesis import Hypothesis
from ..contract.series import Series
from ..contract.verdict import NoiseFloor, Verdict

HypothesisState = Literal["pending", "needs_approval", "denied", "running", "judged"]
"""pending: may be tried now; needs_approval: a person must say yes before it is tried; denied: the permissions or a person said no;
running: its experiment is registered and not yet judged; judged: it has its verdict."""
Fate = Literal["tried", "ruled_out", "not_applicable", "put_off"]
"""How a lever family ends. ruled_out names the measurement; put_off and not_applicable give the reason."""


class Progress(Contract):
    """One step forward of long work. `done` of `total` are in units of work (ladder steps, launches), total 0 when unknown."""

    phase: Literal["pilot", "floor", "screen", "confirm", "stack", "judge"]
    message: str
    done: float = 0
    total: float = 0


class Budget(Contract):
    """Spent and allowed. Failed and aborted launches count."""

    launches: int
    launches_limit: int
    replay_s: float
    replay_s_limit: float
    wall_s: float
    wall_s_limit: float

    @property
    def spent(self) -> bool:
        return not self.allows(1)

    def allows(self, runs: int) -> bool:
        """So many runs more fit: by launches, and the last of them begins within the seconds, if each takes what runs took on average so far."""
        replay, wall = (figure / self.launches if self.launches else 0.0 for figure in (self.replay_s, self.wall_s))
        begins = runs - 1
        return self.launches + runs <= self.launches_limit and self.replay_s + begins * replay < self.replay_s_limit and self.wall_s + begins * wall < self.wall_s_limit


class Estimate(Contract):
    """What something will cost, before it is started; launches and wall seconds."""

    launches: int
    replay_s: float
    wall_s: float
    affordable: bool
    text: str


class BaselineView(Contract):
    """The endpoint as it is: medians over the floor runs."""

    series: Series
    series_id: str
    capacity_rps_per_gpu: float
    floor: NoiseFloor
    minimum_detectable_effect: float
    """Fraction, at the pairs that the endpoint file allows and the next hypothesis's alpha."""
    observables: dict[str, Scalar]
    effective: dict[str, Scalar]
    """Engine arguments as the running server reports them."""
    workload: dict[str, Scalar]
    """Requests, mean and p50 and p99 of prompt and output tokens, ideal prefix-hit share (infinite cache), rate."""
    warnings: tuple[str, ...]


class HypothesisView(Contract):
    id: str
    hypothesis: Hypothesis
    lossless: bool
    state: HypothesisState
    experiment: str | None = None
    verdict: Verdict | None = None
    note: str = ""


class SimulatedEffect(Contract):
    """A prediction of the simulator in virtual time; never evidence."""

    capacity_rps_per_gpu: float
    effect: float
    """Fraction, against the simulator's own figure for the stack so far."""
    observables: dict[str, Scalar]
    caveat: str


class FamilyView(Contract):
    family: Family
    fate: Fate | None
    reason: str


class StackView(Contract):
    accepted: tuple[str, ...]
    """Ids of the hypotheses whose interventions are in."""
    awaiting_approval: tuple[str, ...]
    """Supported, lossy, and waiting for a person."""
    configuration: Configuration
    changes: dict[str, tuple[Scalar | None, Scalar | None]]
    """Argument -> (original, stack)."""


class CampaignView(Contract):
    """Everything at a glance."""

    id: str
    thread: str
    state: Literal["new", "measured", "closed"]
    """new: no baseline yet; measured: hypotheses may be tried; closed: sealed facts are opened, nothing more is measured."""
    endpoint: str
    baseline: BaselineView | None
    hypotheses: tuple[HypothesisView, ...]
    families: tuple[FamilyView, ...]
    stack: StackView
    budget: Budget


class Closing(Contract):
    """How a campaign ended."""

    thread: str
    sentence: str
    """The result in one sentence."""
    baseline_capacity: float
    final_capacity: float | None
    """Requests/s/GPU of the final stack, from its own confirmation; None when nothing was accepted."""
    stack_verdict: Verdict | None
    shams: tuple[str, ...]
    """Ids of the planted candidates, opened now."""
    shams_kept: int
    command: tuple[str, ...]
    """Argument list of the winning server (the original's when nothing was accepted)."""
    ledger: str
    report: str
