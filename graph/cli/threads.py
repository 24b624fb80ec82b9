"""`servewright threads`: the investigations of a project."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="The investigations of a project.", pretty_exceptions_enable=False)


@app.command()
def threads(
    *,
    project: Annotated[Path, typer.Option("--project", help="The project's folder.")] = Path(".servewright"),
    json_: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """List investigations: name, endpoint, how far each is, verdicts, launches spent."""
    from collections import Counter

    from ...tools.experiment.campaign import Campaign
    from ...tools.ledger.project import Project

    place = Project.existing(project)
    views = [Campaign.resume(place, str(entry.key)).view() for entry in place.ledger.entries("campaign_opened")]
    rows = [
        {
            "thread": view.thread,
            "endpoint": view.endpoint,
            "state": view.state,
            "verdicts": dict(Counter(h.verdict.verdict for h in view.hypotheses if h.verdict)),
            "launches": view.budget.launches,
        }
        for view in views
    ]
    if json_:
        typer.echo(json.dumps(rows))
        return
    for row in rows:
        verdicts = ", ".join(f"{count} {name}" for name, count in row["verdicts"].items()) or "no verdicts"
        typer.echo(f"{row['thread']}  {row['endpoint']}  {row['state']}  {verdicts}  {row['launches']} launches")
