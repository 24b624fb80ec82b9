"""The ladder of offered rates, and the frozen rule by which a run walks it.

The ladder is a fine geometric grid, fixed when the series is opened. A run need not visit all of it: the rule below, the same for every arm,
visits the steps that the guardrails need and then closes in on the step where the SLA is lost. What it visits follows from the ladder, the
reference and the attainments seen, and from nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

STRIDE = 1.25
"""The first stride beyond the steps that must be visited reaches this far."""
LOWEST, HIGHEST = 0.4, 8.0
"""Ends of an automatic ladder, as multiples of the reference."""
LOADS = (0.8, 1.0, 1.2, 1.5)


def ladder_around(reference: float, step: float = 0.05) -> tuple[float, ...]:
    """Rates (requests per server second) from 0.4 to 8 times `reference`, `step` apart (a fraction); the reference itself is on it."""
    below = math.ceil(math.log(1 / LOWEST) / math.log1p(step))
    above = math.ceil(math.log(HIGHEST) / math.log1p(step))
    return tuple(round(reference * (1 + step) ** k, 6) for k in range(-below, above + 1))


def must_visit(ladder: Sequence[float], reference: float) -> list[int]:
    """Indices that bracket the loads 0.8 to 1.5 times `reference`, and those nearest to 1.0 and 1.2; ascending."""
    rates = [load * reference for load in LOADS]
    below = [i for i, rate in enumerate(ladder) if rate <= rates[0] * (1 + 1e-9)]
    above = [i for i, rate in enumerate(ladder) if rate >= rates[-1] * (1 - 1e-9)]
    between = [min(range(len(ladder)), key=lambda i, rate=rate: abs(math.log(ladder[i] / rate))) for rate in rates[1:-1]]
    return sorted({*below[-1:], *between, *above[:1]})


def next_step(ladder: Sequence[float], reference: float, kept: Mapping[int, bool]) -> int | None:
    """Index of the step to replay next, or None when the run is complete.

    `kept`: index -> whether the SLA's attainment held there. First the steps that must be visited, ascending (see `must_visit`); then, while nothing failed, up in
    strides that double; while nothing held, down alike; then bisection between the highest step that held below the lowest failure and that failure.
    """
    for index in must_visit(ladder, reference):
        if index not in kept:
            return index
    failed = [i for i, held in kept.items() if not held]
    if not failed:
        return _stride(ladder, kept, up=True)
    lowest_failure = min(failed)
    held_below = [i for i, held in kept.items() if held and i < lowest_failure]
    if not held_below:
        return _stride(ladder, kept, up=False)
    highest_held = max(held_below)
    return (highest_held + lowest_failure) // 2 if lowest_failure - highest_held > 1 else None


def _stride(ladder: Sequence[float], kept: Mapping[int, bool], *, up: bool) -> int | None:
    """One stride beyond the extreme step: about a quarter at first, then doubled with every step taken beyond the four that must be visited."""
    extreme, end = (max(kept), len(ladder) - 1) if up else (min(kept), 0)
    if extreme == end:
        return None
    first = max(1, int(math.log(STRIDE) / math.log(ladder[1] / ladder[0])))
    stride = first * 2 ** max(0, len(kept) - len(LOADS))
    return min(extreme + stride, end) if up else max(extreme - stride, end)


def walked(ladder: Sequence[float], reference: float, kept: Mapping[int, bool]) -> list[int]:
    """Indices in the order in which a run with these outcomes visits them. Ends early where an outcome that the walk needs is missing."""
    known: dict[int, bool] = {}
    while (index := next_step(ladder, reference, known)) is not None and index in kept:
        known[index] = kept[index]
    return list(known)
