"""Records of requests as rows: the table that everything else is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..contract.errors import BadInput, unwritable
from ..contract.rows import ROW_SCHEMA
from .answer import Answer
from .plan import Schedule
from .workload import Workload

if TYPE_CHECKING:
    import polars as pl


def schema() -> dict[str, Any]:
    """`ROW_SCHEMA` as polars types."""
    import polars as pl

    return {name: getattr(pl, dtype) for name, dtype in ROW_SCHEMA.items()}


def rows_of(
    answers: Sequence[Answer], workload: Workload, schedule: Schedule, *, start: float, clock: float, rate_index: int, rate: float, warmup_s: float
) -> pl.DataFrame:
    """Rows of one step. `start` is its first moment by `perf_counter`; times become server seconds since then."""
    import polars as pl

    def seconds(name: str) -> list[float | None]:
        return [None if (t := getattr(answer, name)) is None else (t - start) * clock for answer in answers]

    request = schedule.request
    prompt, output = workload.expected_prompt_tokens[request], workload.expected_output_tokens[request]
    exact = workload.exact[request] & (output >= 0)
    columns = {
        "rate_index": np.full(len(answers), rate_index, np.int16),
        "offered_rps": np.full(len(answers), rate),
        "phase": ["warmup" if t < warmup_s else "measure" for t in schedule.scheduled_s.tolist()],
        "request": request,
        "scheduled_s": schedule.scheduled_s,
        "sent_s": seconds("sent"),
        "first_s": seconds("first"),
        "last_s": seconds("last"),
        "end_s": seconds("end"),
        "status": [answer.status for answer in answers],
        "http_status": [answer.http for answer in answers],
        "finish_reason": [answer.finish for answer in answers],
        "prompt_tokens": [answer.prompt_tokens for answer in answers],
        "cached_tokens": [answer.cached_tokens for answer in answers],
        "output_tokens": [answer.output_tokens for answer in answers],
        "expected_prompt_tokens": [n if n >= 0 else None for n in prompt.tolist()],
        "expected_output_tokens": [n if sure else None for n, sure in zip(output.tolist(), exact.tolist(), strict=True)],
        "chunks": [answer.chunks for answer in answers],
        "text_sha": [answer.sha.hex() if answer.sha else None for answer in answers],
        "error": [answer.error for answer in answers],
    }
    return pl.DataFrame(columns, schema=schema())


def write_rows(frames: Sequence[pl.DataFrame], path: Path) -> None:
    """All steps so far into one Parquet file, replaced as a whole: whoever looks sees complete steps. Raises `ServewrightError` where there is no room."""
    import polars as pl

    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        pl.concat(frames).write_parquet(partial)
        partial.replace(path)
    except OSError as error:
        raise unwritable(path, "the rows of this run", error) from None


def read_rows(path: Path) -> pl.DataFrame:
    """Read a Parquet file of rows. Raises `BadInput` where it isn't one."""
    import polars as pl

    try:
        frame = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise BadInput("rows", str(path), f"a readable Parquet file of rows ({type(error).__name__})") from None
    if dict(frame.schema) != schema():
        raise BadInput("rows", str(path), f"a Parquet file with the columns {', '.join(ROW_SCHEMA)}")
    return frame
