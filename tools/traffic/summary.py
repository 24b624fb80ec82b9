"""A short account of a replay, for people and scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..contract.sla import SLA
from .judged import judged

if TYPE_CHECKING:
    import polars as pl

PERCENTILES = (50, 90, 99)


def summarise(rows: pl.DataFrame, sla: SLA | None, window_s: float) -> list[dict[str, Any]]:
    """One object a ladder step. Times in server milliseconds; latency from the scheduled time, and beside it from the send (`_from_send`)."""
    import polars as pl

    steps = []
    for (_, rate), step in judged(rows, sla).sort("rate_index").group_by(["rate_index", "offered_rps"], maintain_order=True):
        measured = step.filter(phase="measure")
        good = measured.filter("good").with_columns(ttft_from_send=pl.col("first_s") - pl.col("sent_s"), e2e_from_send=pl.col("last_s") - pl.col("sent_s"))
        took = float(good["end_s"].to_numpy().max() - measured["scheduled_s"].to_numpy().min()) if good.height else 0.0
        steps.append(
            {
                "offered_rps": rate,
                "requests": measured.height,
                "ok": good.height,
                "within_sla": int(measured["within"].sum()) if sla else None,
                "attainment": round(float(measured["within"].to_numpy().mean()), 4) if sla and measured.height else None,
                "completed_rps": _round(good.height / took) if took else 0.0,
                "output_tokens_per_s": _round(int(good["output_tokens"].sum()) / window_s),
                "status": dict(sorted(measured["status"].value_counts().iter_rows())),
                "errors": dict(sorted(measured.filter(~pl.col("good"))["error"].drop_nulls().value_counts().iter_rows())),
                "lateness_ms": _milliseconds((measured["sent_s"] - measured["scheduled_s"]).drop_nulls()),
                **{f"{name}_ms": _milliseconds(good[name].drop_nulls()) for name in ("ttft", "ttft_from_send", "tpot", "e2e", "e2e_from_send")},
            }
        )
    return steps


def _milliseconds(values: pl.Series) -> dict[str, float] | None:
    figures = values.to_numpy() * 1e3
    if not len(figures):
        return None
    percentiles = {f"p{q}": _round(float(np.percentile(figures, q, method="inverted_cdf"))) for q in PERCENTILES}
    return {"mean": _round(float(figures.mean())), **percentiles, "max": _round(float(figures.max()))}


def _round(value: float) -> float:
    return round(value, 3)
