"""All figures of a run, computed from its raw rows, the reports and the series, and from nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..contract.base import Scalar
from ..contract.errors import BadInput
from ..contract.observables import REGISTRY, resolve
from ..contract.run import ClientReport, RunMeasurement, ServerReport
from ..contract.series import Series
from ..contract.sla import SLA
from .capacity import margin_quantile, read_capacity
from .fitness import reasons
from .judged import judged
from .points import at_loads, point_of

if TYPE_CHECKING:
    import polars as pl


def measure(rows: pl.DataFrame, *, run: str, series: Series, server: ServerReport, client: ClientReport) -> RunMeasurement:
    """Measure a run. Pure: the same input gives the same figures anywhere. Rows of the simulator in virtual time are measured alike.

    Only rows of phase `measure` count towards figures; all scheduled ones are in the denominators. Raises `BadInput` when there is no measured row.
    """
    table = judged(rows, series.sla).sort("rate_index", "scheduled_s", "request")
    measured = table.filter(phase="measure")
    steps = [(float(rate), step) for (_, rate), step in measured.group_by(["rate_index", "offered_rps"], maintain_order=True)]
    if not steps:
        raise BadInput("rows", f"{rows.height} rows of run {run}", "at least one measured request")
    steps.sort(key=lambda item: item[0])
    points = [point_of(step, rate, series.policy.window_s) for rate, step in steps]
    quantiles = [margin_quantile(step["margin"].to_numpy(), series.sla.attainment) for _, step in steps]
    capacity = read_capacity([rate for rate, _ in steps], quantiles, [step.height for _, step in steps], series.gpus)
    observables: dict[str, Scalar] = {
        "capacity_rps_per_gpu": capacity.rps_per_gpu,
        **at_loads(points, series),
        **_cached(measured),
        **_told(server),
    }
    return RunMeasurement(
        run=run,
        capacity=capacity,
        points=tuple(points),
        observables=observables,
        invalid=tuple(reasons(table, rows["rate_index"].unique(maintain_order=True).to_list(), points, series, client, server)),
    )


def _cached(measured: pl.DataFrame) -> dict[str, float]:
    told = measured.filter("good").drop_nulls(["cached_tokens", "prompt_tokens"])
    total = int(told["prompt_tokens"].sum())
    return {"cached_token_share": int(told["cached_tokens"].sum()) / total} if total else {}


def _told(server: ServerReport) -> dict[str, Scalar]:
    """What the engine said of itself, as far as the registry knows it."""
    told: Mapping[str, Scalar] = {
        **{name: value for name, value in server.counters.items() if name in REGISTRY and not REGISTRY[name].at_load},
        **{f"config.{name}": value for name, value in server.effective.items()},
        "launch_s": server.launch_s,
    }
    return {name: value for name, value in sorted(told.items()) if _registered(name)}


def _registered(name: str) -> bool:
    try:
        resolve(name)
    except BadInput:
        return False
    return True


def step_attainment(rows: pl.DataFrame, sla: SLA | None) -> float:
    """Share of a step's measured requests that kept the SLA; what the walk over the ladder goes by."""
    within = judged(rows.filter(phase="measure"), sla)["within"]
    return float(within.to_numpy().mean()) if len(within) else 1.0
