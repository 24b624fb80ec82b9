"""A cheap look that decides whether confirmation is worth its price. Never evidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .sequential import Noise
from .tails import t_upper

MISS = 0.02
"""Chance, at each screening pair, that a candidate worth the minimum effect is turned down."""
MOST_PAIRS = 2
"""Screening pairs. A second one is asked for where the first shows less than the minimum effect but doesn't exclude it."""
VIRTUAL_SHARE = 0.5
"""Share of the minimum effect that the simulator must predict for confirmation to be paid for."""


@dataclass(frozen=True)
class Screened:
    go: bool | None
    """None: one more screening pair."""
    effect: float
    reason: str


def screen(baseline: Sequence[float], candidate: Sequence[float], floor: Noise, minimum_effect: float) -> Screened:
    """Compare screening pairs (raw positive values, same length, at least one): is a gain of `minimum_effect` still plausible?

    Turned down when the mean log ratio lies below what a candidate worth `minimum_effect` falls short of with chance `MISS` (t quantile at the floor's
    degrees of freedom: a floor of few runs that came out small must not turn gains down).
    """
    pairs = len(baseline)
    gain = math.fsum(math.log(c / b) for b, c in zip(baseline, candidate, strict=True)) / pairs
    worth = math.log1p(minimum_effect)
    bar = worth - t_upper(MISS, floor.df) * floor.sd * math.sqrt(2 / pairs)
    if gain >= bar and gain < worth and pairs < MOST_PAIRS:
        return Screened(None, math.expm1(gain), f"the screen shows {math.expm1(gain):+.1%}: a second screening pair costs less than confirmation")
    return _screened(gain, bar)


def screen_virtual(baseline: float, candidate: float, minimum_effect: float) -> Screened:
    """The simulator's word has no noise but may be wrong by its model: half the minimum effect is enough to go on."""
    return _screened(math.log(candidate / baseline), VIRTUAL_SHARE * math.log1p(minimum_effect))


def _screened(gain: float, bar: float) -> Screened:
    shown = f"the screen shows {math.expm1(gain):+.1%}, and confirmation starts at {math.expm1(bar):+.1%}"
    return Screened(gain >= bar, math.expm1(gain), shown if gain >= bar else f"{shown}: no reason to pay for it")
