"""`servewright report`: what an investigation found, as Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def report(
    thread: Annotated[str, typer.Argument(help="The investigation's name.")],
    project: Annotated[Path, typer.Option("--project", help="The project's folder.")] = Path(".servewright"),
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write to this file instead of the terminal.")] = None,
) -> None:
    """The report of an investigation, closed or not."""
    from ...tools.contract.errors import BadInput
    from ...tools.ledger.project import Project
    from ...tools.report.markdown import render

    text = render(Project.existing(project), thread)
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput("--output", str(output), f"a file that can be written ({error.strerror})") from None
    typer.echo(f"written to {output}")
