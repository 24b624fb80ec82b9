"""What the graph remembers between steps. Small on purpose: the facts of a campaign live in the ledger and are read afresh.

Types that a model fills in (`Plan`, `Finding`) are pydantic models with a description a field: the same text guides a real model.
"""

from __future__ import annotations

import operator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ..tools.contract.endpoint import Family
from ..tools.contract.hypothesis import Hypothesis
from ..tools.experiment.views import Closing, Fate


class Reply(BaseModel):
    """Base of what a model fills in: unknown keys are refused, so that a misspelt field is told to the model and not lost."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Settled(Reply):
    """A family that needs no experiment."""

    family: Family
    fate: Fate
    """ruled_out: a measurement speaks against it (name it); not_applicable: it can't apply to this endpoint; put_off: not now, with the reason."""
    reason: str = Field(min_length=10, max_length=600)


class Assignment(Reply):
    """One family for one investigator."""

    family: Family
    question: str = Field(min_length=5, max_length=600)
    """What the investigator should find out, with the evidence that raises the question."""
    round: int = 1
    """Filled in by the graph: from 2 on, the stack has changed since the family was last looked at."""


class Plan(Reply):
    """The orchestrator's decision."""

    assignments: list[Assignment] = Field(default_factory=list, max_length=8)
    """Families to investigate now."""
    settled: list[Settled] = Field(default_factory=list, max_length=8)
    """Families that need no investigator, and why."""
    order: list[str] = Field(default_factory=list, max_length=64)
    """Ids of the pending hypotheses, the one to try first at the front: largest expected gain per cost."""


class Finding(Reply):
    """An investigator's answer: hypotheses, or why there are none."""

    hypotheses: list[Hypothesis] = Field(default_factory=list, max_length=2)
    """At most two, each changing one thing."""
    nothing: Settled | None = None
    """When there is nothing to propose: the fate of the family and the reason."""


class Handed(BaseModel):
    """A finding, and whose it is."""

    family: Family
    round: int
    finding: Finding


class Usage(BaseModel):
    """What the models cost. `uncounted`: replies without token figures."""

    requests: int = 0
    uncounted: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            requests=self.requests + other.requests,
            uncounted=self.uncounted + other.uncounted,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


class State(BaseModel):
    round: int = 0
    """Rounds of investigation begun."""
    stack_size: int = 0
    """Accepted changes when the round began: a larger stack since then is the reason for another round."""
    handed: Annotated[list[Handed], operator.add] = []
    """Findings of all investigators, in the order in which they were sent out."""
    registered: int = 0
    """How many of `handed` have been proposed to the campaign."""
    settled: dict[Family, Settled] = {}
    """Families that end without an experiment, as far as known."""
    order: list[str] = []
    """Ids of hypotheses, first to be tried first."""
    current: str = ""
    """Id of the hypothesis under test."""
    skipped: dict[str, str] = {}
    """Hypotheses that could not be tried: id -> why."""
    usage: Annotated[Usage, operator.add] = Usage()
    closing: Closing | None = None
