"""`servewright ledger`: the record, read and checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, help="The record of a project: every hypothesis, experiment, run and verdict.")
ProjectOption = Annotated[Path, typer.Option("--project", help="The project's folder.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
DEFAULT = Path(".servewright")


@app.command("list")
def list_entries(
    project: ProjectOption = DEFAULT,
    campaign: Annotated[str | None, typer.Option("--campaign", help="Only this investigation's entries.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only entries of this kind, such as verdict.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Entries, oldest first, a line each."""
    from ...tools.contract.errors import BadInput
    from ...tools.ledger.project import Project
    from ...tools.ledger.records import KINDS
    from ...tools.ledger.summary import summarise

    if kind is not None and kind not in KINDS:
        raise BadInput("--kind", kind, f"one of {', '.join(KINDS)}")
    entries = Project.existing(project).ledger.entries(*([kind] if kind else []), campaign=campaign)
    if as_json:
        typer.echo(json.dumps([{"seq": e.seq, "at": e.at, "kind": e.kind, "key": e.key, "summary": summarise(e), "hash": e.hash} for e in entries], indent=1))
        return
    for entry in entries:
        typer.echo(f"{entry.seq:>5}  {entry.at[:19]}Z  {entry.kind:<15} {entry.key or '-':<16} {_short(summarise(entry))}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="ID", help="Number of an entry, or id of a run, experiment, hypothesis, series or investigation.")],
    project: ProjectOption = DEFAULT,
    as_json: JsonOption = False,
) -> None:
    """All entries of an id, in full."""
    from ...tools.contract.errors import BadInput
    from ...tools.ledger.project import Project

    ledger = Project.existing(project).ledger
    found = [entry for entry in ledger.entries() if str(entry.seq) == name] if name.isdecimal() else ledger.entries(key=name)
    if not found:
        raise BadInput("ID", name, "an id that `servewright ledger list` shows")
    bodies: list[dict[str, Any]] = [
        {"seq": e.seq, "at": e.at, "kind": e.kind, "key": e.key, "body": e.body, "prev": e.prev, "hash": e.hash} for e in found
    ]
    if as_json:
        typer.echo(json.dumps(bodies, indent=1))
        return
    for body in bodies:
        typer.echo(f"entry {body['seq']} ({body['kind']}) {body['at']}\nhash {body['hash']}\n{json.dumps(body['body'], indent=2, ensure_ascii=False)}\n")


@app.command()
def verify(
    project: ProjectOption = DEFAULT,
    head: Annotated[str | None, typer.Option("--head", help="A head's hash that you kept: the record must still hold it.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Check the chain and all raw files, and compute every figure and verdict again. Exit code 1 when anything is wrong."""
    from ...tools.ledger.project import Project
    from ...tools.ledger.verify import verify as check

    found = check(Project.existing(project), head=head)
    if as_json:
        typer.echo(found.model_dump_json(indent=1))
    else:
        for problem in found.problems:
            typer.echo(f"problem: {problem}")
        for notice in found.notices:
            typer.echo(f"notice:  {notice}")
        typer.echo(f"{found.entries} entries, {found.runs} runs, {found.artifacts} raw files and {found.verdicts} verdicts checked; head {found.head}")
        typer.echo(f"{len(found.problems)} problems found" if found.problems else "the record is intact: every figure and verdict follows from the raw files")
    raise typer.Exit(1 if found.problems else 0)


def _short(text: str, width: int = 110) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."
