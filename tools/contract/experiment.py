"""One hypothesis's test, registered before it starts."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from .base import Contract, digest
from .configuration import Configuration
from .hypothesis import Hypothesis
from .run import RunRecord
from .series import Series
from .verdict import NoiseFloor

STOPPING_RULE = "sequential-1"
"""Name of the rule in `judgement` by which pairs are added; raised when the rule changes."""


class ExperimentPlan(Contract):
    """Fixed at registration. Every run made under it counts."""

    campaign: str
    number: int = Field(ge=1)
    """Place in the campaign, from 1."""
    purpose: Literal["hypothesis", "stack", "compare"]
    """stack: the accepted interventions as a whole against the original baseline."""
    hypothesis: Hypothesis
    series: Series
    baseline: Configuration
    candidate: Configuration
    alpha: float = Field(gt=0, lt=1)
    """One-sided, for this experiment; taken from the campaign's error budget."""
    minimum_effect: float = Field(gt=0)
    min_pairs: int = Field(ge=2)
    max_pairs: int = Field(ge=2)
    screen: Literal["virtual", "pair", "none"]
    seed: int
    """Of the order of arms within pairs."""
    floor: NoiseFloor
    """As known at registration; judging pools the experiment's own baseline runs on top."""
    lossless: bool
    """The catalogue's word, not the proposer's."""
    rule: str = STOPPING_RULE

    @model_validator(mode="after")
    def _arms(self) -> ExperimentPlan:
        if self.max_pairs < self.min_pairs:
            raise ValueError("max_pairs must not be below min_pairs")
        return self

    def id(self) -> str:
        return "e-" + digest(self)[:12]

    def first_arm(self, pair: int) -> Literal["baseline", "candidate"]:
        """Which arm of the pair runs first, known before the start: random by seed for every two pairs, turned round in the second of them.

        What the order itself does (a first run that is always cold) then can't pass for a gain in the two pairs that a verdict needs at least.
        """
        baseline_leads = int(digest([self.seed, self.id(), pair // 2])[:8], 16) % 2 == 0
        return "baseline" if baseline_leads == (pair % 2 == 0) else "candidate"


class Evidence(Contract):
    """All that a verdict is computed from."""

    plan: ExperimentPlan
    runs: tuple[RunRecord, ...]
    """Every run registered under the experiment (screening too; judgement sets it aside), aborted attempts left out."""
    baseline_probes: tuple[RunRecord, ...] = ()
    """Floor runs of the series, for the parity tolerance."""
    closed: bool = False
    """No further pair will come (the budget is spent, or the user stopped it)."""
