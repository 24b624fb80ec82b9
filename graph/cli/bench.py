"""`servewright bench`: the benchmarks that the documents quote."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Annotated, Any

import typer

app = typer.Typer()


@app.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def bench(
    context: typer.Context,
    name: Annotated[str | None, typer.Argument(help="The benchmark; without one they are listed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the benchmarks, or run one; options after its name are its own."""
    known = import_module("servewright.evals.bench")  # by name: the command doesn't depend on evals
    if name is None:
        listed = [(one.name, one.summary) for one in known.benchmarks()]
        if as_json:
            typer.echo(json.dumps([{"name": name, "summary": summary} for name, summary in listed], indent=1))
        for one, summary in listed if not as_json else []:
            typer.echo(f"{one:<16} {summary}")
        return
    figures: dict[str, Any] = known.benchmark(name).run(list(context.args))
    typer.echo(json.dumps(figures, indent=1) if as_json else "\n".join(_lines(figures)))


def _lines(figures: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for name, value in figures.items():
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            lines += _table(value)
        else:
            lines.append(f"{name}: {value if isinstance(value, str) else json.dumps(value)}")
    return lines


def _table(rows: list[dict[str, Any]]) -> list[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [names, *([_cell(row.get(name)) for name in names] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(names))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _cell(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
