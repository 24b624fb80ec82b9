"""The campaign's error budget: the chance that a campaign on a perfect endpoint keeps anything."""

from __future__ import annotations

from typing import Protocol

from ..contract.errors import BadInput, Refused

STACK_SHARE = 0.2
"""Share of alpha set apart for the final stack against the original baseline."""
PATIENCE = 8
"""A hypothesis gets 2 / (tested so far + this) of what is left: a quarter at first, and never all, however many come.
Most candidates are turned down by the screen and give theirs back, so few are tested in a campaign."""


class Decided(Protocol):
    @property
    def verdict(self) -> str | None: ...
    @property
    def pairs(self) -> int: ...
    @property
    def alpha(self) -> float: ...


class ErrorBudget:
    """Online alpha spending over any number of adaptively chosen hypotheses (Foster & Stine 2008; return of alpha as in
    the online fallback procedure, Tian & Ramdas 2021).

    The family-wise error rate stays at most `alpha` when each test has its level given what came before:
    the levels of all true nulls tested before a first false keep never add up to more.
    - `next_alpha()` hands out a level; several may be out at once (investigators work side by side).
    - `record(decision)` settles the one handed out with `decision.alpha`. Levels come back when the hypothesis was kept (a true
      effect costs nothing, and after a false one the budget is lost anyway), or when no confirmation pair was run: what screening
      turned down was not tested, and its data are not the confirmation's.
    - `stack_alpha` is the final stack's own.
    """

    def __init__(self, alpha: float) -> None:
        if not 0 < alpha < 0.5:
            raise BadInput("alpha", alpha, "an error rate between 0 and 0.5")
        self.alpha = alpha
        self.stack_alpha = alpha * STACK_SHARE
        self._left = alpha - self.stack_alpha
        self._out: list[float] = []
        self._tested = 0

    @property
    def left(self) -> float:
        """What is neither spent, handed out, nor the stack's."""
        return self._left

    def next_alpha(self) -> float:
        """The level of the next hypothesis, one-sided."""
        level = self._left * 2 / (self._tested + len(self._out) + PATIENCE)
        self.take(level)
        return level

    def take(self, level: float) -> None:
        """Hand out this very level: one that was registered before, when the budget is rebuilt from a record, in the order of registration.

        Raises `Refused` when it isn't there any more.
        """
        if not 0 < level <= self._left * (1 + 1e-9):
            raise Refused(f"error budget: alpha {level:g} is more than the {self._left:g} that is left")
        self._left = max(0.0, self._left - level)
        self._out.append(level)

    def record(self, decision: Decided) -> None:
        """Settle the level that this decision was made at. Raises `Refused` when no such level is out."""
        if decision.verdict is None:
            raise Refused("error budget: an undecided comparison can't be recorded; go on, or close it")
        near = min(self._out, key=lambda level: abs(level - decision.alpha), default=None)
        if near is None or abs(near - decision.alpha) > 1e-9 * near:
            raise Refused(f"error budget: no hypothesis is open at alpha {decision.alpha:g}")
        self._out.remove(near)
        if decision.verdict == "supported" or decision.pairs == 0:
            self._left += near
        else:
            self._tested += 1
