"""Baseline against candidate, pair by pair, until it can be told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

from ..contract.errors import BadInput
from ..contract.verdict import VerdictName
from .boundaries import nominal_levels
from .scale import variance
from .tails import t_upper

FUTILITY_LEVEL = 0.01
"""Chance, at one look, to give up on a candidate whose true effect is the minimum effect."""

OWN_LEVEL = 0.03
"""At every look the pairs must also agree among themselves: their own spread alone, as if nothing were known beforehand, must exclude no gain at this level."""


class Noise(Protocol):
    @property
    def sd(self) -> float: ...
    @property
    def df(self) -> int: ...


@dataclass(frozen=True)
class Decision:
    verdict: VerdictName | None
    """None while undecided."""
    effect: float | None
    """candidate / baseline - 1 (geometric mean over the pairs)."""
    interval: tuple[float, float] | None
    """Repeated confidence interval of `effect` at level 1 - 2 alpha over all looks: excludes 0 on the good side exactly when H0 is rejected."""
    pairs: int
    reason: str
    alpha: float


class SequentialComparison:
    """One-sided group-sequential test of H0 "no gain" on paired log ratios, one look after each pair from `min_pairs` to `max_pairs`.

    `observe` takes raw positive values of one pair of fresh runs. Variance: pairs' own spread pooled with the noise
    floor (`scale.variance`). Boundaries: `boundaries.nominal_levels`. Stops with
    `supported` when the interval excludes no gain; `refuted` when the interval ends below `minimum_effect`;
    `inconclusive` when a candidate that is worth `minimum_effect` would look this bad with chance `FUTILITY_LEVEL` at most, or the pairs ran out.
    `minimum_effect` is a fraction: 0.05 = 5 % higher, or 5 % lower for direction `lower`. `noise`: sd of log values of single
    runs and its df; None when nothing is known beforehand.
    """

    def __init__(
        self,
        alpha: float,
        direction: Literal["higher", "lower"] = "higher",
        minimum_effect: float = 0.05,
        max_pairs: int = 6,
        noise: Noise | None = None,
        min_pairs: int = 2,
    ) -> None:
        if not 0 < alpha < 0.5:
            raise BadInput("alpha", alpha, "a one-sided error rate between 0 and 0.5")
        if direction not in ("higher", "lower"):
            raise BadInput("direction", direction, "higher or lower")
        if not (minimum_effect > 0 and math.isfinite(minimum_effect)) or (direction == "lower" and minimum_effect >= 1):
            raise BadInput("minimum_effect", minimum_effect, "a positive fraction such as 0.05" + (" below 1" if direction == "lower" else ""))
        if min_pairs < 2 or max_pairs < min_pairs:
            raise BadInput("max_pairs", max_pairs, f"at least min_pairs ({min_pairs}), which is at least 2")
        self.alpha, self.minimum_effect, self.min_pairs, self.max_pairs, self.noise = alpha, minimum_effect, min_pairs, max_pairs, noise
        self._sign = 1.0 if direction == "higher" else -1.0
        self._worth = abs(math.log1p(self._sign * minimum_effect))
        self._levels = nominal_levels(alpha, min_pairs, max_pairs)
        self._gains: list[float] = []

    def observe(self, baseline: float, candidate: float) -> Decision:
        """Add one confirmation pair (raw positive values) and look. Raises `BadInput` for a value that isn't positive."""
        for name, value in (("baseline", baseline), ("candidate", candidate)):
            if not (math.isfinite(value) and value > 0):
                raise BadInput(name, value, "a positive figure")
        self._gains.append(self._sign * math.log(candidate / baseline))
        return self._look()

    def _look(self) -> Decision:
        pairs = len(self._gains)
        gain = math.fsum(self._gains) / pairs
        own = math.fsum((g - gain) ** 2 for g in self._gains) / (pairs - 1) if pairs > 1 else 0.0
        prior, prior_df = (2 * self.noise.sd**2, self.noise.df) if self.noise else (0.0, 0)
        spread, df = variance(own, pairs - 1, prior, prior_df)
        if df == 0:
            return self._decision(None, gain, None, "one pair says nothing of its own noise")
        error = math.sqrt(spread / pairs)
        reach = t_upper(self._levels[min(max(pairs - self.min_pairs, 0), len(self._levels) - 1)], df) * error
        if pairs > 1:
            reach = max(reach, t_upper(OWN_LEVEL, pairs - 1) * math.sqrt(own / pairs))
        ends = (gain - reach, gain + reach)
        shown = self._shown(gain, ends)
        if pairs < self.min_pairs:
            return self._decision(None, gain, ends, f"{shown}: {self.min_pairs} pairs are needed at least")
        if ends[0] > 0:
            return self._decision("supported", gain, ends, f"{shown}, which excludes 'no gain'")
        if ends[1] < self._worth:
            return self._decision("refuted", gain, ends, f"{shown}, which excludes a gain of {self.minimum_effect:.1%}")
        if gain + t_upper(FUTILITY_LEVEL, df) * error < self._worth:
            return self._decision("inconclusive", gain, ends, f"{shown}: further pairs would hardly show a gain of {self.minimum_effect:.1%}")
        if pairs >= self.max_pairs:
            return self._decision("inconclusive", gain, ends, f"{shown}: the pairs ran out")
        return self._decision(None, gain, ends, f"{shown}: undecided")

    def _shown(self, gain: float, ends: tuple[float, float]) -> str:
        low, high = (_percent(_expm1(end)) for end in sorted(self._sign * end for end in ends))
        level = f"{1 - 2 * self.alpha:.2%}".replace(".00", "").replace("%", " %")
        return f"effect {math.expm1(self._sign * gain):+.1%} ({level} interval {low} to {high}) over {len(self._gains)} pair{'s'[: len(self._gains) != 1]}"

    def _decision(self, verdict: VerdictName | None, gain: float, ends: tuple[float, float] | None, reason: str) -> Decision:
        interval = None if ends is None else tuple(sorted(_expm1(self._sign * end) for end in ends))
        return Decision(verdict, math.expm1(self._sign * gain), interval, len(self._gains), reason, self.alpha)  # pyright: ignore[reportArgumentType]


def _percent(effect: float) -> str:
    return f"{effect:+.1%}" if effect < 10 else "beyond +1000%"


def _expm1(x: float) -> float:
    """exp(x) - 1, finite: an interval of two inconsistent pairs can reach beyond what a float holds."""
    return math.expm1(min(x, 50.0))
