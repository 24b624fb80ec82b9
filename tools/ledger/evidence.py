"""From raw files back to figures: what is judged is measured again from the rows, never taken from a record."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from ..contract.base import digest
from ..contract.errors import BadInput
from ..contract.experiment import Evidence
from ..contract.rows import ROW_SCHEMA
from ..contract.run import ClientReport, Probe, RunMeasurement, RunRecord, ServerReport
from ..contract.series import Series
from .campaigns import floor_entry, plan
from .history import Run, get_run, runs, series_of
from .project import Project
from .records import RunFinished

if TYPE_CHECKING:
    import polars as pl


def measure_rows(project: Project, rows: str, *, run: str, series: Series, server: ServerReport, client: ClientReport) -> RunMeasurement:
    """All figures of a run, from its stored rows. The bytes are checked every time; the same ones are measured once a `Project` object."""
    from ..traffic.metrics import measure

    content = project.store.read(rows)
    name = digest([rows, run, series.id(), server.model_dump(mode="json"), client.model_dump(mode="json")])
    if name not in project.measured:
        project.measured[name] = measure(_frame(content, rows), run=run, series=series, server=server, client=client)
    return project.measured[name]


def measure_again(project: Project, run: Run) -> RunMeasurement | None:
    """The measurement of a finished run as its raw files give it; None for a failed run and for one without a series."""
    ended = run.finished
    series = series_of(project, run)
    if ended is None or ended.failure is not None or series is None or ended.rows is None or ended.server is None or ended.client is None:
        return None
    return measure_rows(project, ended.rows, run=run.id, series=series, server=ended.server, client=ended.client)


def run_record(project: Project, run: Run) -> RunRecord:
    """A finished run as the judge sees it, measured again from its rows."""
    return record_of(run, measure_again(project, run), _probe(project, run.finished))


def record_of(run: Run, measurement: RunMeasurement | None, probe: Probe | None = None) -> RunRecord:
    """Who the run was, with figures that are known already."""
    ended, key = run.finished, run.reserved
    return RunRecord(
        run=run.id,
        experiment=key.experiment,
        kind=key.kind,
        arm=key.arm,
        pair=key.pair,
        attempt=key.attempt,
        configuration=key.configuration.digest(),
        series=key.series or "",
        measurement=measurement,
        failure=ended.failure if ended else None,
        probe=probe or Probe(),
    )


def evidence_runs(project: Project, experiment: str) -> tuple[list[Run], list[Run]]:
    """All finished runs of the experiment, and the floor runs behind the floor it was registered with."""
    registered = plan(project, experiment)
    own = [run for run in runs(project, campaign=registered.campaign, experiment=experiment) if run.status == "finished"]
    floor = floor_entry(project, registered)
    return own, [get_run(project, name) for name in floor.runs] if floor else []


def evidence(project: Project, experiment: str, *, closed: bool = False) -> Evidence:
    """All that the experiment's verdict is computed from. Raises `Refused` for an experiment that isn't registered."""
    own, floor = evidence_runs(project, experiment)
    return Evidence(
        plan=plan(project, experiment),
        runs=tuple(run_record(project, run) for run in own),
        baseline_probes=tuple(run_record(project, run) for run in floor),
        closed=closed,
    )


def evidence_digest(project: Project, experiment: str) -> str:
    """Names the raw evidence: the plan and the hashes of its runs' entries, which cover the digests of all raw files."""
    own, floor = evidence_runs(project, experiment)
    hashes = {entry.key: entry.hash for entry in project.ledger.entries("run_finished")}
    return digest([experiment, [hashes[run.id] for run in own], [hashes[run.id] for run in floor]])


def _probe(project: Project, ended: RunFinished | None) -> Probe:
    return Probe.model_validate_json(project.store.read(ended.probe)) if ended and ended.probe else Probe()


def _frame(content: bytes, name: str) -> pl.DataFrame:
    """Raises `BadInput` when the bytes aren't a Parquet file with the columns of `ROW_SCHEMA`."""
    import polars as pl

    try:
        rows = pl.read_parquet(io.BytesIO(content))
    except pl.exceptions.PolarsError as error:
        raise BadInput(f"rows {name}", str(error).splitlines()[0], "a Parquet file") from None
    found = {column: str(dtype) for column, dtype in rows.schema.items()}
    if found != ROW_SCHEMA:
        wrong = sorted({*found.items()} ^ {*ROW_SCHEMA.items()})
        raise BadInput(f"rows {name}", ", ".join(f"{column}: {dtype}" for column, dtype in wrong[:6]), "the columns and types of contract.rows.ROW_SCHEMA")
    return rows
