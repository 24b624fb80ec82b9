"""Capacity: the highest offered rate at which the required share of requests keeps the SLA, read off the ladder.

Attainment at a rate is at least A exactly when the A-quantile of the requests' margins (largest of figure / bound, see `judged`) is at most 1: the two curves cross
their bound at the same rate. The quantile is what is interpolated. Attainment itself is flat at 1 up to the cliff and falls within one step of it, so a straight line
through it would put the crossing beside the last good step whatever the server's speed; the quantile goes on telling how close the bound is, on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, exp, log

import numpy as np

from ..contract.run import Capacity

LEAST, MOST = 0.02, 20.0
"""Quantiles are clipped to this: further off they say no more about where the bound is crossed, and a failure's margin is infinite."""


def margin_quantile(margins: np.ndarray, attainment: float) -> float:
    """The ceil(attainment * n)-th smallest margin: at most 1 exactly when the share of margins up to 1 is at least `attainment`."""
    return float(np.sort(margins)[max(ceil(attainment * len(margins) - 1e-9), 1) - 1])


def read_capacity(rates: Sequence[float], quantiles: Sequence[float], weights: Sequence[float], gpus: int) -> Capacity:
    """Capacity from the margin quantiles of a ladder's steps (ascending rates).

    Curves that aren't monotone are made so first, by isotonic regression of log quantile with the steps' request counts as weights; the crossing is then unique,
    and is interpolated in log rate and log quantile.
    """
    level = isotonic([log(min(max(q, LEAST), MOST)) for q in quantiles], weights)
    lost = next((k for k, value in enumerate(level) if value > 0), None)
    if lost is None:
        return Capacity(rps_per_gpu=rates[-1] / gpus, censored="above")
    if lost == 0:
        return Capacity(rps_per_gpu=rates[0] / gpus, censored="below")
    below, above = level[lost - 1], level[lost]
    share = -below / (above - below)
    return Capacity(rps_per_gpu=exp(log(rates[lost - 1]) + share * (log(rates[lost]) - log(rates[lost - 1]))) / gpus)


def isotonic(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The non-decreasing sequence nearest to `values` in weighted least squares: pool adjacent violators (Barlow et al., 1972)."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        pool = (value, float(weight), 1)
        while pools and pools[-1][0] > pool[0]:
            before = pools.pop()
            total = before[1] + pool[1]
            pool = ((before[0] * before[1] + pool[0] * pool[1]) / total, total, before[2] + pool[2])
        pools.append(pool)
    return [value for value, _, count in pools for _ in range(count)]
