"""Is a run fit to judge by? Reasons why not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..contract.run import ClientReport, RatePoint, ServerReport
from ..contract.series import Series
from .plan import planned_requests
from .walk import next_step, walked

if TYPE_CHECKING:
    import polars as pl

SHARE_OF_BOUND = 0.05
LATE_S = 0.005
"""Lateness (wall seconds) that is always let pass."""
CPU_SHARE = 0.9
CALM = 1.2
"""Multiple of the reference up to which the client's lateness counts in any case."""


def reasons(rows: pl.DataFrame, order: list[int], points: list[RatePoint], series: Series, client: ClientReport, server: ServerReport) -> list[str]:
    """Why the run is not fit; empty when it is. `order`: indices of the ladder's steps as they were visited."""
    return [*_incomplete(rows, points, series), *_late(rows, points, series), *_starved(client), *_server_lag(order, points, series, server), *_no_usage(rows)]


def read_up_to(held: Mapping[float, bool], reference: float | None) -> float:
    """The highest rate from which figures are read: the lowest that lost the attainment above all that held it, and 1.2 times the reference at least.

    `held`: rate -> whether the attainment held. What the client does beyond that rate delays nothing that counts.
    """
    best = max((rate for rate, kept in held.items() if kept), default=0.0)
    return max(min((rate for rate in held if rate > best), default=best), CALM * (reference or 0.0))


def tightest_bound_s(points: list[RatePoint], series: Series) -> float:
    """The smallest delay (server seconds) that by itself would use up a bound. A delay is spread over an answer's tokens before TPOT feels it."""
    sla = series.sla
    bounds = [bound for bound in (sla.ttft_s, sla.e2e_s) if bound is not None]
    if sla.tpot_s is not None:
        lengths = [point.output_tokens_mean for point in points if point.output_tokens_mean]
        bounds.append(sla.tpot_s * max((min(lengths) if lengths else 1) - 1, 1))
    return min(bounds)


def _incomplete(rows: pl.DataFrame, points: list[RatePoint], series: Series) -> list[str]:
    found = []
    policy = series.policy
    doubled = rows.height - rows.select("rate_index", "request", "scheduled_s").unique().height
    if doubled:
        found.append(f"{doubled} rows are there twice")
    counts: dict[int, int] = dict(rows.group_by("rate_index").len().iter_rows())
    for index, rate in enumerate(series.ladder):
        planned, there = planned_requests(rate, policy.warmup_s, policy.window_s), counts.pop(index, None)
        if there is not None and there != planned:
            found.append(f"the step at {rate:g} requests/s has {there} rows where {planned} requests were planned")
    if counts:
        found.append(f"rows of steps that the ladder doesn't have: {sorted(counts)}")
    found += _unwalked(points, series)
    wrong = rows.filter(~_matches_ladder(rows, series)).height
    if wrong:
        found.append(f"{wrong} rows have another offered rate than their step of the ladder")
    return found


def _unwalked(points: list[RatePoint], series: Series) -> list[str]:
    """Steps that are due by the series' rule and didn't run, or ran though they weren't due."""
    ladder = series.ladder
    kept = {min(range(len(ladder)), key=lambda i, point=point: abs(ladder[i] - point.offered_rps)): point.attainment >= series.sla.attainment for point in points}
    if series.policy.climb:
        walk = walked(ladder, series.reference_capacity, kept)
        following = next_step(ladder, series.reference_capacity, {index: kept[index] for index in walk})
        due = [*walk] if following is None else [*walk, following]
    else:
        due = list(range(len(ladder)))
    missing, strange = [ladder[i] for i in due if i not in kept], [ladder[i] for i in kept if i not in due]
    found = [f"no rows of the ladder's steps at {', '.join(f'{rate:g}' for rate in missing)} requests/s"] if missing else []
    return found + ([f"steps at {', '.join(f'{rate:g}' for rate in strange)} requests/s ran though they weren't due"] if strange else [])


def _matches_ladder(rows: pl.DataFrame, series: Series) -> pl.Series:
    import polars as pl

    ladder = np.array([*series.ladder, np.nan])
    index = rows["rate_index"].to_numpy().astype(int)
    inside = np.where((index >= 0) & (index < len(series.ladder)), index, len(series.ladder))
    return pl.Series(np.isclose(ladder[inside], rows["offered_rps"].to_numpy(), rtol=1e-9))


def _late(rows: pl.DataFrame, points: list[RatePoint], series: Series) -> list[str]:
    import polars as pl

    limit = read_up_to({point.offered_rps: point.attainment >= series.sla.attainment for point in points}, series.reference_capacity)
    calm = rows.filter((pl.col("phase") == "measure") & (pl.col("offered_rps") <= limit) & pl.col("sent_s").is_not_null())
    if not calm.height:
        return []
    late = float(np.percentile((calm["sent_s"] - calm["scheduled_s"]).to_numpy(), 99, method="inverted_cdf"))
    allowed = max(LATE_S * series.policy.clock, SHARE_OF_BOUND * tightest_bound_s(points, series))
    if late <= allowed:
        return []
    return [f"the client was late: p99 {late * 1e3:.1f} ms (server time) after the schedule, {allowed * 1e3:.1f} ms are let pass"]


def _starved(client: ClientReport) -> list[str]:
    if client.cpu_share <= CPU_SHARE * client.processes:
        return []
    return [f"the client was the bottleneck: it used {client.cpu_share:.2f} of {client.processes} processor core(s)"]


def _server_lag(order: list[int], points: list[RatePoint], series: Series, server: ServerReport) -> list[str]:
    """By step where the engine tells it so (beyond the step that capacity is read from a lag changes nothing that counts), of the whole run otherwise."""
    lag, allowed = server.clock_lag_p99_s, SHARE_OF_BOUND * tightest_bound_s(points, series)
    by_step = server.clock_lags_p99_s[1:]
    if len(by_step) == len(order):
        limit = read_up_to({point.offered_rps: point.attainment >= series.sla.attainment for point in points}, series.reference_capacity)
        lag = max((late for index, late in zip(order, by_step, strict=True) if series.ladder[index] <= limit), default=None)
    if lag is None or lag <= allowed:
        return []
    return [f"the server fell behind its own clock: p99 {lag * 1e3:.1f} ms (server time), {allowed * 1e3:.1f} ms are let pass"]


def _no_usage(rows: pl.DataFrame) -> list[str]:
    ok = rows.filter(status="ok")
    missing = ok["output_tokens"].null_count()
    return [f"{missing} of {ok.height} answers came without usage: their tokens can't be counted"] if missing else []
