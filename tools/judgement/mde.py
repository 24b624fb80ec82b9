"""What a number of pairs can detect, and how many pairs an effect needs."""

from __future__ import annotations

import math
from functools import lru_cache

from ..contract.errors import BadInput
from .boundaries import crossing_probability, falling_root, nominal_levels
from .scale import FLOOR_DF_CAP
from .sequential import Noise
from .tails import t_upper

MOST_PAIRS = 64


def minimum_detectable_effect(floor: Noise, pairs: int, alpha: float, power: float = 0.8, min_pairs: int = 2) -> float:
    """Smallest effect (fraction, 0.05 = 5 %) that `SequentialComparison` with at most `pairs` pairs detects with chance `power`.

    Exact for the sequential boundaries given the noise floor's sd; the uncertainty of the sd enters through the t quantiles.
    """
    if pairs < min_pairs:
        return math.inf
    return math.expm1(_drift_needed(alpha, min_pairs, pairs, min(floor.df, FLOOR_DF_CAP), power) * floor.sd * math.sqrt(2))


def pairs_needed(floor: Noise, effect: float, alpha: float, power: float = 0.8, min_pairs: int = 2) -> int | None:
    """Fewest pairs to plan for such that `effect` (fraction) is detected with chance `power`; None: more than 64."""
    if effect <= 0:
        raise BadInput("effect", effect, "a positive fraction such as 0.05")
    fits = [pairs for pairs in (min_pairs, 4, 8, 16, 32, MOST_PAIRS) if pairs >= min_pairs]
    high = next((pairs for pairs in fits if minimum_detectable_effect(floor, pairs, alpha, power, min_pairs) <= effect), None)
    if high is None:
        return None
    low = max((pairs for pairs in fits if pairs < high), default=min_pairs - 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if minimum_detectable_effect(floor, middle, alpha, power, min_pairs) <= effect else (middle, high)
    return high


@lru_cache(maxsize=4096)
def _drift_needed(alpha: float, min_pairs: int, max_pairs: int, floor_df: int, power: float) -> float:
    """Effect of a pair, in standard deviations of a pair's log ratio."""
    levels = nominal_levels(alpha, min_pairs, max_pairs)
    bounds = tuple(t_upper(level, floor_df + min_pairs + look - 1) for look, level in enumerate(levels))
    return falling_root(lambda drift: power - crossing_probability(drift, bounds, min_pairs), 0.0, bounds[0] + 5, within=1e-3)
