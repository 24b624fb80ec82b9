"""Figures of each ladder step, and of loads between steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING

import numpy as np

from ..contract.observables import LOADS
from ..contract.run import RatePoint
from ..contract.series import Series

if TYPE_CHECKING:
    import polars as pl

PERCENTILES = {"p50": 50, "p90": 90, "p99": 99}


def point_of(step: pl.DataFrame, rate: float, window_s: float) -> RatePoint:
    """Figures of one step from its judged, measured rows."""
    good = step.filter("good")
    tokens = good["output_tokens"].drop_nulls()
    within = int(step["within"].sum())
    return RatePoint(
        offered_rps=rate,
        requests=step.height,
        ok=good.height,
        within_sla=within,
        attainment=within / step.height,
        goodput_rps=within / window_s,
        output_tokens_per_s=float(tokens.sum()) / window_s,
        output_tokens_mean=float(tokens.to_numpy().mean()) if len(tokens) else None,
        ttft_s=_statistics(good["ttft"]),
        tpot_s=_statistics(good["tpot"]),
        e2e_s=_statistics(good["e2e"]),
    )


def _statistics(values: pl.Series) -> dict[str, float] | None:
    """Mean and percentiles, nearest-rank: a value that was measured, no mixture of two."""
    known = values.drop_nulls().to_numpy()
    if not len(known):
        return None
    return {"mean": float(known.mean())} | {name: float(np.percentile(known, q, method="inverted_cdf")) for name, q in PERCENTILES.items()}


def at_loads(points: Sequence[RatePoint], series: Series) -> dict[str, float]:
    """Observables at multiples of the reference capacity, linear in log rate between the two steps around; absent outside the ladder that ran."""
    figures: dict[str, float] = {}
    table = [(point.offered_rps, _flat(point)) for point in points]
    for load in LOADS:
        rate = float(load) * series.reference_capacity
        for (low, before), (high, after) in pairwise(table):
            if not low * (1 - 1e-9) <= rate <= high * (1 + 1e-9):
                continue
            share = min(max((log(rate) - log(low)) / (log(high) - log(low)), 0.0), 1.0)
            for name in before.keys() | after.keys():
                ends = before.get(name), after.get(name)
                # At a step itself only that step's figure is needed.
                value = ends[0] if share < 1e-9 else ends[1] if share > 1 - 1e-9 else _between(ends, share)
                if value is not None:
                    figures[f"{name}@{load}"] = value
            break
    return dict(sorted(figures.items()))


def _between(ends: tuple[float | None, float | None], share: float) -> float | None:
    low, high = ends
    return None if low is None or high is None else low + share * (high - low)


def _flat(point: RatePoint) -> dict[str, float]:
    success = point.ok / point.requests
    figures = {
        "goodput_rps": point.goodput_rps,
        "attainment": point.attainment,
        "success_share": success,
        "error_share": 1 - success,
        "output_tokens_per_s": point.output_tokens_per_s,
    }
    if point.output_tokens_mean is not None:
        figures["output_tokens_mean"] = point.output_tokens_mean
    for name, statistics in (("ttft", point.ttft_s), ("tpot", point.tpot_s), ("e2e", point.e2e_s)):
        figures |= {f"{name}_{statistic}_s": value for statistic, value in (statistics or {}).items()}
    return figures
