"""`servewright compare A.yaml B.yaml`, or `A.yaml --set max_num_seqs=64`: a judged A/B."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ...tools.contract.configuration import Configuration
    from ...tools.contract.endpoint import Endpoint
    from ...tools.experiment.compare import Comparison

app = typer.Typer(add_completion=False)


@app.command()
def compare(
    a: Annotated[Path, typer.Argument(help="Endpoint file of the baseline.")],
    b: Annotated[Path | None, typer.Argument(help="Endpoint file of the candidate; only engine.args and engine.env may differ.")] = None,
    set_: Annotated[list[str] | None, typer.Option("--set", help="Engine argument of the candidate, NAME=VALUE; may be repeated.")] = None,
    unset: Annotated[list[str] | None, typer.Option("--unset", help="Engine argument that the candidate does not have; may be repeated.")] = None,
    project: Annotated[Path, typer.Option(help="Project folder.")] = Path(".servewright"),
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON; progress goes to stderr.")] = False,
) -> None:
    """Is the second configuration better inside the SLA? Floor, interleaved fresh-launch pairs, checks, verdict; recorded in the ledger.

    Exit codes: 0 judged (whatever the verdict), 1 the baseline failed, 2 bad input, 130 stopped.
    """
    from ...tools.contract.endpoint import load_endpoint
    from ...tools.experiment.compare import compare as judged
    from ...tools.ledger.project import Project
    from .stopping import cancelled_by_signals
    from .telling import teller

    first = load_endpoint(a)
    second = _candidate(first, a, b, set_ or [], unset or [])
    cancel = threading.Event()
    with cancelled_by_signals(cancel):
        found = judged(Project(project), first, second, teller(), cancel)
    _show(found, first, project, as_json)


def _candidate(first: Endpoint, a: Path, b: Path | None, changes: list[str], unset: list[str]) -> Configuration:
    from ...tools.contract.configuration import Configuration
    from ...tools.contract.endpoint import load_endpoint
    from ...tools.contract.errors import BadInput
    from .changes import parse_change

    if (b is None) == (not changes and not unset):
        raise BadInput("arguments", str(b), "either a second endpoint file, or --set/--unset")
    if b is None:
        args = {name: value for name, value in first.engine.args.items() if name not in unset} | dict(parse_change(change) for change in changes)
        return Configuration(kind=first.engine.kind, args=args, env=first.engine.env)
    second = load_endpoint(b)
    same = {"name": first.name, "engine": first.engine}
    if second.model_copy(update=same) != first:
        mine, theirs = first.model_dump(), second.model_copy(update=same).model_dump()
        different = next(key for key in mine if mine[key] != theirs[key])
        raise BadInput(f"{b}: {different}", theirs[different], f"what {a} says: two configurations are compared under the same {different}")
    return Configuration(kind=second.engine.kind, args=second.engine.args, env=second.engine.env)


def _show(found: Comparison, endpoint: Endpoint, project: Path, as_json: bool) -> None:
    verdict, floor = found.verdict, found.baseline.floor
    if as_json:
        import json

        print(json.dumps({"thread": found.thread, "experiment": found.experiment, "baseline": found.baseline.model_dump(mode="json"), "verdict": verdict.model_dump(mode="json")}))
        return
    virtual = " (simulated in virtual time: a prediction)" if endpoint.measurement.mode == "virtual" else ""
    print(f"baseline      {found.baseline.capacity_rps_per_gpu:.3g} requests/s/GPU inside the SLA, noise floor {floor.sd:.2%} ({floor.df} degrees of freedom){virtual}")
    print(f"verdict       {verdict.verdict}: {verdict.reason}")
    if verdict.effect is not None and verdict.interval is not None:
        print(f"effect        {'a bound: ' if verdict.censored else ''}{verdict.effect:+.1%}, interval {verdict.interval[0]:+.1%} to {verdict.interval[1]:+.1%}, {verdict.pairs} pairs")
    for name, results in (("falsifier", verdict.falsifiers), ("activation", verdict.activation), ("guardrail", verdict.guardrails)):
        for result in results:
            print(f"{name:<13} {result.check}: {'holds' if result.holds else 'unknown' if result.holds is None else 'does not hold'} ({result.reason})")
    if verdict.parity is not None:
        print(f"parity        {verdict.parity.reason}")
    print(f"ledger        {project / 'ledger.db'} (servewright ledger show {found.experiment})")
