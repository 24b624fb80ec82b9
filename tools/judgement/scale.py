"""How uncertain a mean of few values is, when something is known of their noise beforehand."""

from __future__ import annotations

from .tails import f_upper

FLOOR_DF_CAP = 5
"""Most degrees of freedom that prior noise counts for. However well the baseline's noise is known, the candidate's is not:
the wider t quantiles of this cap keep the error rate for candidates with up to twice the baseline's spread (`servewright bench error-rates`)."""
DISAGREEMENT_LEVEL = 0.05
"""Values that spread more than the prior noise explains at this level are taken at their own spread alone."""


def variance(own: float, own_df: int, prior: float, prior_df: int) -> tuple[float, int]:
    """(variance of one value, degrees of freedom).

    Own and prior variances pooled by their degrees of freedom, unless an F test finds the own one larger (an outlier among the values, or
    a candidate noisier than the baseline): then it stands alone.
    """
    prior_df = min(prior_df, FLOOR_DF_CAP)
    if prior_df == 0 or (own_df and own > prior * f_upper(DISAGREEMENT_LEVEL, own_df, prior_df)):
        return own, own_df
    return (prior_df * prior + own_df * own) / (prior_df + own_df), prior_df + own_df
