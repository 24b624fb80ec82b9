"""Each request held against the SLA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contract.sla import SLA

if TYPE_CHECKING:
    import polars as pl

ENDLESS = float("inf")
JUST_LOST = 1.000001


def judged(rows: pl.DataFrame, sla: SLA | None) -> pl.DataFrame:
    """The rows with `good`, `within`, `ttft`, `tpot`, `e2e` (server seconds) and `margin` added.

    good: the answer came to its end, and isn't shorter than the engine was told to make it. ttft and e2e count from the scheduled time; tpot is
    (last token - first) / (tokens - 1), absent for answers of one token or of unknown length. margin: the largest of figure / bound, so that a request keeps the SLA
    exactly when it is at most 1; a request that was cut off by the end of the drain has what it had used up by then, any other failure has infinity.
    A bound that can't be judged (no usage, so no tpot) counts as lost.
    """
    import polars as pl

    c = pl.col
    short = (c("output_tokens") < c("expected_output_tokens")).fill_null(False)
    first, last = c("first_s").fill_null(c("end_s")), c("last_s").fill_null(c("end_s"))
    rows = rows.with_columns(
        good=(c("status") == "ok") & ~short,
        ttft=first - c("scheduled_s"),
        tpot=pl.when(c("output_tokens") > 1).then((last - first) / (c("output_tokens") - 1)),
        e2e=last - c("scheduled_s"),
        used=c("end_s") - c("scheduled_s"),
    )
    if sla is None:
        return rows.with_columns(within=c("good"), margin=pl.when("good").then(0.0).otherwise(ENDLESS)).drop("used")
    parts, cut = [], []
    if sla.ttft_s is not None:
        parts.append(c("ttft") / sla.ttft_s)
        cut.append(pl.when(c("first_s").is_null()).then(c("used")).otherwise(c("ttft")) / sla.ttft_s)
    if sla.tpot_s is not None:
        parts.append(pl.when(c("output_tokens") == 1).then(0.0).otherwise(c("tpot") / sla.tpot_s).fill_null(ENDLESS))
    if sla.e2e_s is not None:
        parts.append(c("e2e") / sla.e2e_s)
        cut.append(c("used") / sla.e2e_s)
    unfinished = c("status").is_in(["unfinished", "timeout"]) & bool(cut)
    lost = pl.max_horizontal(*cut, JUST_LOST) if cut else pl.lit(ENDLESS)
    margin = pl.when("good").then(pl.max_horizontal(*parts)).when(unfinished).then(lost).otherwise(ENDLESS)
    return rows.with_columns(margin=margin).with_columns(within=c("good") & (c("margin") <= 1)).drop("used")
