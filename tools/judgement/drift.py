"""Is a series of identical measurements steady? Warm-up, drift, change points, outliers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..contract.errors import BadInput
from .tails import t_upper

CONVERGED_WITHIN = 0.03
"""Passes over one server are steady when (max - min) / median is at most this."""
COLD_GAP = 0.03
"""Log gap below which a slow first run is not called cold, however quiet the others are."""
LEVEL = 0.005
"""Chance that a steady series of normal figures is called cold, or shifted, wrongly."""


@dataclass(frozen=True)
class Steadiness:
    """What may be used of repeated passes over one server."""

    dropped: int
    """Passes at the start that are warm-up."""
    converged: bool
    kept: tuple[float, ...]
    reason: str


def steadiness(values: Sequence[float], within: float = CONVERGED_WITHIN) -> Steadiness:
    """Judge repeated identical passes over one resident server (not fresh launches), in order.

    A first pass more than `within` below the median of the others is warm-up and dropped. What remains must be at least two
    passes, must not rise from each pass to the next (three or more that do are still warming up), and must lie
    within `within` of each other. Raises `BadInput` for fewer than two passes or a figure that isn't positive.
    """
    passes = [float(v) for v in values]
    if len(passes) < 2 or any(not (math.isfinite(v) and v > 0) for v in passes):
        raise BadInput("passes", values, "at least two positive figures")
    dropped = 1 if len(passes) > 2 and passes[0] < (1 - within) * statistics.median(passes[1:]) else 0
    kept = passes[dropped:]
    spread = (max(kept) - min(kept)) / statistics.median(kept)
    first = "the first pass is warm-up and doesn't count; " if dropped else ""
    if len(passes) > 2 and all(a < b for a, b in pairwise(passes)):
        return Steadiness(dropped, False, tuple(kept), f"{first}each of the {len(passes)} passes is faster than the one before: still warming up")
    if spread > within:
        return Steadiness(dropped, False, tuple(kept), f"{first}the passes that remain differ by {spread:.1%}, more than {within:.0%}")
    return Steadiness(dropped, True, tuple(kept), f"{first}{len(kept)} passes within {spread:.1%}")


def cold_first(logs: Sequence[float]) -> bool:
    """The first run lies below what the others predict for one more run (prediction interval of the normal distribution)."""
    rest = logs[1:]
    if len(rest) < 2:
        return False
    gap = statistics.fmean(rest) - logs[0]
    return gap > COLD_GAP and gap > t_upper(LEVEL, len(rest) - 1) * math.sqrt(squares_about_mean(rest) / (len(rest) - 1) * (1 + 1 / len(rest)))


def drift_seen(logs: Sequence[float]) -> str:
    """What is not steady in log figures of identical runs, in words; empty when nothing is seen."""
    seen = []
    n = len(logs)
    if cold_first(logs):
        seen.append(f"cold first run, {1 - math.exp(logs[0] - statistics.fmean(logs[1:])):.1%} below the others: left out")
    steps = [b - a for a, b in pairwise(logs)]
    if n >= 4 and (all(s > 0 for s in steps) or all(s < 0 for s in steps)):
        seen.append(f"every run {'faster' if steps[0] > 0 else 'slower'} than the one before")
    elif n == 3 and all(s > COLD_GAP for s in steps):
        seen.append("every run faster than the one before by more than 3 %: may still be warming up")
    elif (at := change_point(logs)) is not None:
        shift = statistics.fmean(logs[at:]) - statistics.fmean(logs[:at])
        seen.append(f"level changed by {math.expm1(shift):+.1%} at run {at + 1} of {n}")
    if (odd := outlier(logs)) is not None:
        seen.append(f"run {odd + 1} of {n} lies {math.expm1(logs[odd] - statistics.median(logs)):+.1%} from the median")
    return "; ".join(seen)


def change_point(logs: Sequence[float]) -> int | None:
    """First index of the second level when two levels, each of at least three runs, fit far better than one.

    Largest two-sample t over the possible places, its level divided by their number (Bonferroni). None: no change seen.
    """
    n = len(logs)
    best, where = 0.0, None
    for at in range(3, n - 2):
        left, right = logs[:at], logs[at:]
        squares = squares_about_mean(left) + squares_about_mean(right)
        gap = abs(statistics.fmean(left) - statistics.fmean(right))
        error = math.sqrt(squares / (n - 2) * (1 / len(left) + 1 / len(right)))
        score = gap / error if error > 0 else (math.inf if gap > 0 else 0.0)
        if score > best:
            best, where = score, at
    return where if where is not None and best > t_upper(LEVEL / max(n - 5, 1), n - 2) else None


def squares_about_mean(values: Sequence[float]) -> float:
    """Sum of squared deviations (`statistics.variance` is exact and a hundred times slower)."""
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)


def outlier(logs: Sequence[float]) -> int | None:
    """Index of the run farthest from the median when that is over five robust standard deviations (1.4826 MAD) and 3 %."""
    if len(logs) < 5:
        return None
    middle = statistics.median(logs)
    gaps = [abs(x - middle) for x in logs]
    far = max(range(len(logs)), key=gaps.__getitem__)
    return far if far > 0 and gaps[far] > max(5 * 1.4826 * statistics.median(gaps), COLD_GAP) else None
