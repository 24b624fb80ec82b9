"""What judgement says. Computed, never written by hand."""

from __future__ import annotations

from typing import Literal

from .base import Contract, Scalar
from .hypothesis import Check

VerdictName = Literal["supported", "refuted", "inconclusive", "not_activated", "invalid", "infeasible", "untestable"]
"""supported: H0 (no gain) rejected at the hypothesis's alpha, no falsifier fired, change active, parity kept, guardrails held;
refuted: a falsifier fired, parity or a guardrail broke, or H0 stands and the interval ends below the minimum effect;
inconclusive: the pairs ran out before either (or the screen gave no reason to pay for confirmation);
not_activated: the change did not take effect in the running server;
invalid: the measurement isn't fit to judge by;
infeasible: the candidate doesn't start, or dies;
untestable: the smallest detectable effect is larger than the minimum effect."""


class NoiseFloor(Contract):
    """Standard deviation of log capacity over identical runs."""

    sd: float
    df: int
    """Degrees of freedom behind `sd`."""
    low: float
    high: float
    """95 % interval of sd (chi-squared)."""
    values: tuple[float, ...]
    """Capacities (requests/s/GPU) it was computed from."""
    drift: str = ""
    """What drift, change point or warm-up was seen; empty when none."""


class CheckResult(Contract):
    check: Check
    value: Scalar | None
    """The figure that decided; None: it could not be measured."""
    interval: tuple[float, float] | None = None
    holds: bool | None
    """The check's statement is true, false, or None: can't be told."""
    reason: str


class ParityResult(Contract):
    kept: bool | None
    """None: could not be measured."""
    distance: float | None
    """Mean absolute difference of log-probability per token, candidate against baseline."""
    tolerance: float | None
    """From baseline against baseline."""
    reason: str


class Verdict(Contract):
    verdict: VerdictName
    reason: str
    """One sentence that names the deciding figure."""
    effect: float | None = None
    """Relative change of capacity, candidate / baseline - 1, of the confirmation runs only."""
    interval: tuple[float, float] | None = None
    """Confidence interval of `effect` at level 1 - 2 alpha: its lower end is above 0 exactly when H0 is rejected."""
    alpha: float
    minimum_effect: float
    pairs: int = 0
    """Complete confirmation pairs."""
    censored: bool = False
    """A capacity in it is only a bound: the effect is at least, or at most, the one given."""
    falsifiers: tuple[CheckResult, ...] = ()
    activation: tuple[CheckResult, ...] = ()
    guardrails: tuple[CheckResult, ...] = ()
    parity: ParityResult | None = None
    spread_ratio: float | None = None
    """Candidate's standard deviation over the baseline's, log capacity."""
    predicted: bool | None = None
    """The prediction's interval contains the effect."""
