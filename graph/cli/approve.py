"""`servewright approve` and `servewright deny`: a person's answer, for changes that the permissions don't allow by themselves."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

ThreadArgument = Annotated[str, typer.Argument(help="Name of the investigation.", show_default=False)]
HypothesisArgument = Annotated[str, typer.Argument(help="Id of the hypothesis, as the investigation shows it.", show_default=False)]
ProjectOption = Annotated[Path, typer.Option("--project", help="The project's folder.")]
FOLDER = Path(".servewright")


def approve(thread: ThreadArgument, hypothesis: HypothesisArgument, *, project: ProjectOption = FOLDER) -> None:
    """Say yes to a change that waits for a person. 'servewright resume THREAD' goes on with it."""
    _answer(thread, hypothesis, project, yes=True)


def deny(thread: ThreadArgument, hypothesis: HypothesisArgument, *, project: ProjectOption = FOLDER) -> None:
    """Say no to a change that waits for a person. 'servewright resume THREAD' goes on without it."""
    _answer(thread, hypothesis, project, yes=False)


def _answer(thread: str, hypothesis: str, project: Path, *, yes: bool) -> None:
    from ...tools.contract.errors import BadInput
    from ...tools.experiment.campaign import Campaign
    from ...tools.ledger.project import Project
    from ..gate import waiting
    from ..show import change, clean

    campaign = Campaign.resume(Project.existing(project), thread)
    open_ = waiting(campaign.view())
    if hypothesis not in open_:
        raise BadInput("HYPOTHESIS", hypothesis, f"the id of a change that waits for a person ({', '.join(open_) or 'none does'})")
    view = campaign.approve(hypothesis, yes, f"user:{getpass.getuser()}")
    typer.echo(
        clean(f"{'approved' if yes else 'denied'}: {view.hypothesis.title} ({change(view.hypothesis.intervention)}); go on with: servewright resume {thread}")
    )
