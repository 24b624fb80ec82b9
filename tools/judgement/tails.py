"""Quantiles and tail areas of the few distributions that judging needs; all one-sided, upper tail.

`scipy.special` directly: a hundred times faster a call than `scipy.stats`, and campaigns are simulated through these.
"""

from __future__ import annotations

from functools import lru_cache

from scipy import special


@lru_cache(maxsize=65536)
def t_upper(level: float, df: float) -> float:
    """The t value that is exceeded with probability `level` at `df` degrees of freedom."""
    return -float(special.stdtrit(df, level))


@lru_cache(maxsize=4096)
def normal_upper(level: float) -> float:
    return -float(special.ndtri(level))


@lru_cache(maxsize=4096)
def f_upper(level: float, df_above: float, df_below: float) -> float:
    """The variance ratio that is exceeded with probability `level`."""
    return float(special.fdtri(df_above, df_below, 1 - level))


def f_tail(ratio: float, df_above: float, df_below: float) -> float:
    """Probability of a variance ratio above `ratio`."""
    return float(special.fdtrc(df_above, df_below, ratio))


@lru_cache(maxsize=4096)
def chi2_upper(level: float, df: float) -> float:
    return float(special.chdtri(df, level))
