"""The noise floor: how much identical runs differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..contract.errors import BadInput
from ..contract.verdict import NoiseFloor as NoiseFloorRecord
from .drift import cold_first, drift_seen, squares_about_mean
from .tails import chi2_upper

RESOLUTION = 0.001
"""Least standard deviation of log capacity that is believed: capacity is read between ladder steps some percent apart, and equal readings don't show that
there is no noise below that."""


class NoiseFloor(NoiseFloorRecord):
    """A noise floor from its two figures: `NoiseFloor(sd, df)`; the interval of `sd` follows from them.

    `sd`: standard deviation of log values of single runs; `df`: its degrees of freedom.
    """

    def __init__(self, sd: float, df: int, **known: Any) -> None:
        if not (math.isfinite(sd) and sd >= 0):
            raise BadInput("noise.sd", sd, "a standard deviation of log values, not negative")
        if df < 1:
            raise BadInput("noise.df", df, "at least one degree of freedom (two identical runs)")
        low, high = sd_interval(sd, df)
        super().__init__(**{"sd": sd, "df": df, "low": low, "high": high, "values": (), **known})


def sd_interval(sd: float, df: int) -> tuple[float, float]:
    """95 % interval of a standard deviation (chi-squared; exact for normal log values)."""
    return sd * math.sqrt(df / chi2_upper(0.025, df)), sd * math.sqrt(df / chi2_upper(0.975, df))


def noise_floor(capacities: Sequence[float], pooled: Sequence[Sequence[float]] = ()) -> NoiseFloorRecord:
    """Noise floor of identical runs in the order they were made, pooled with further groups of identical runs.

    `capacities`: of the floor runs (any positive figure: requests/s/GPU). `pooled`: groups whose members are identical runs of
    one arm (such as the baseline runs of one experiment); only differences within a group count, so a shift between groups
    (another hour, another stack) adds nothing. A cold first run is left out and named in `drift`. Outliers stay in: they
    are noise that the next pair can meet too, and leaving them out would understate it; they are named.
    Raises `BadInput` for fewer than two runs or a figure that isn't positive.
    """
    logs = _logs(capacities, "floor runs")
    if len(logs) < 2:
        raise BadInput("floor runs", len(logs), "at least two identical runs")
    kept = logs[1:] if cold_first(logs) else logs
    squares, df = _within(kept)
    for group in pooled:
        more, more_df = _within(_logs(group, "pooled runs"))
        squares, df = squares + more, df + more_df
    sd = max(math.sqrt(squares / df), RESOLUTION)
    low, high = sd_interval(sd, df)
    return NoiseFloorRecord(sd=sd, df=df, low=low, high=high, values=tuple(float(c) for c in capacities), drift=drift_seen(logs))


def _logs(values: Sequence[float], what: str) -> list[float]:
    for value in values:
        if not (math.isfinite(value) and value > 0):
            raise BadInput(what, value, "positive figures")
    return [math.log(value) for value in values]


def _within(logs: Sequence[float]) -> tuple[float, int]:
    """Sum of squares about the group's own mean, and its degrees of freedom."""
    return (squares_about_mean(logs), len(logs) - 1) if len(logs) > 1 else (0.0, 0)
