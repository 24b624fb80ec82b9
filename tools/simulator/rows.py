"""A simulated ladder step as the raw rows that a real replay writes, so that all that follows is the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..contract.rows import ROW_SCHEMA
from .load import SimRequest
from .virtual import VirtualEngine

if TYPE_CHECKING:
    import polars as pl


def virtual_rows(
    engine: VirtualEngine,
    requests: Sequence[int],
    arrivals: Sequence[SimRequest],
    *,
    rate_index: int,
    offered_rps: float,
    warmup_s: float,
    drain_s: float,
    warmup: bool = False,
) -> tuple[pl.DataFrame, dict[str, float]]:
    """One ladder step on `engine`: rows with the columns and dtypes of `ROW_SCHEMA`, and the engine's counters so far.

    `requests[i]` is the workload's index of `arrivals[i]`, whose `at_s` counts from the step's start. What is open `drain_s` after the last
    was due is unfinished. The client is never late. `warmup`: all rows are of phase warmup (a frozen prefix that fills the cache).
    """
    import polars as pl

    until = max((arrival.at_s for arrival in arrivals), default=0.0) + drain_s
    outcomes = engine.replay(arrivals, until)
    interval = int(engine.config.args["stream_interval"])
    ok = [outcome.status == "ok" for outcome in outcomes]
    refused = [outcome.status == "http_error" for outcome in outcomes]
    at = [arrival.at_s for arrival in arrivals]
    columns: dict[str, list[object]] = {
        "rate_index": [rate_index] * len(at),
        "offered_rps": [offered_rps] * len(at),
        "phase": ["warmup" if warmup or due < warmup_s else "measure" for due in at],
        "request": list(requests),
        "scheduled_s": list(at),
        "sent_s": list(at),
        "first_s": [o.first_s for o in outcomes],
        "last_s": [o.last_s for o in outcomes],
        "end_s": [due if bad else until if o.last_s is None else o.last_s for o, due, bad in zip(outcomes, at, refused, strict=True)],
        "status": [o.status for o in outcomes],
        "http_status": [400 if bad else 200 for bad in refused],
        "finish_reason": ["length" if fine else None for fine in ok],
        "prompt_tokens": [o.prompt_tokens if fine else None for o, fine in zip(outcomes, ok, strict=True)],
        "cached_tokens": [o.cached_tokens for o in outcomes],
        "output_tokens": [o.output_tokens if fine else None for o, fine in zip(outcomes, ok, strict=True)],
        "expected_prompt_tokens": [o.prompt_tokens for o in outcomes],
        "expected_output_tokens": [arrival.output_tokens for arrival in arrivals],
        "chunks": [1 + -(-(o.output_tokens - 1) // interval) if fine else 0 for o, fine in zip(outcomes, ok, strict=True)],
        "text_sha": [None] * len(at),
        "error": ["longer than max_model_len" if bad else None for bad in refused],
    }
    schema = {name: getattr(pl, dtype) for name, dtype in ROW_SCHEMA.items()}
    return pl.DataFrame(columns, schema=schema), engine.counters()
