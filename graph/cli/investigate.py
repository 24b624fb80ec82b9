"""`servewright investigate` and `servewright resume`: a whole campaign, or the rest of one."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ...tools.contract.errors import Refused, ServewrightError

if TYPE_CHECKING:
    from ...tools.experiment.campaign import Campaign
    from ...tools.ledger.project import Project
    from ..drive import Ending
    from ..show import Teller

DONE, ERROR, WAITING, BUDGET, INTERRUPTED = 0, 1, 10, 20, 130
"""Exit codes; 2 is bad input. BUDGET: spent before anything could be concluded."""

Approvals = Literal["ask", "park", "deny"]
ProjectOption = Annotated[Path, typer.Option("--project", help="The project's folder: its ledger and artifacts.")]
ModelOption = Annotated[str, typer.Option("--model", help="playbook (rules, no key needed), or provider:name of any chat model that LangChain knows.")]
BaseUrlOption = Annotated[str | None, typer.Option("--base-url", help="Address of a self-hosted server that speaks the provider's API.")]
ApprovalsOption = Annotated[
    Approvals | None,
    typer.Option(
        "--approvals",
        help="What needs a person's yes: ask at the terminal, park (exit 10, answer with 'servewright approve'), or deny. Default: ask on a terminal, else park.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout; progress goes to stderr.")]
FOLDER = Path(".servewright")


def investigate(
    endpoint: Annotated[Path, typer.Argument(help="The endpoint file (YAML).", show_default=False)],
    *,
    thread: Annotated[
        str | None, typer.Option("--thread", help="Name of the investigation; an existing one is resumed. Default: the endpoint's name and the time.")
    ] = None,
    project: ProjectOption = FOLDER,
    model: ModelOption = "playbook",
    base_url: BaseUrlOption = None,
    approvals: ApprovalsOption = None,
    json_: JsonOption = False,
) -> None:
    """Investigate an endpoint: baseline and noise floor, hypotheses, experiments that try to refute them, the stack of what held.

    Exit codes: 0 done; 1 error (the message says which); 2 bad input; 10 waits for a person; 20 the budget was spent before anything could be concluded; 130 interrupted.
    """
    from ...tools.contract.endpoint import load_endpoint
    from ...tools.experiment.campaign import Campaign
    from ...tools.ledger.project import Project
    from ..models import chat_model

    loaded = load_endpoint(endpoint)
    chat_model(model, base_url)
    place = Project(project)
    name = thread if thread is not None else f"{loaded.name[:46]}-{time.strftime('%Y%m%d-%H%M%S')}"
    campaign = Campaign.open(place, loaded, name)
    raise typer.Exit(Session(place, campaign, name, model, base_url, approvals, json_).run())


def resume(
    thread: Annotated[str, typer.Argument(help="Name of the investigation; 'servewright threads' lists them.", show_default=False)],
    *,
    project: ProjectOption = FOLDER,
    model: ModelOption = "playbook",
    base_url: BaseUrlOption = None,
    approvals: ApprovalsOption = None,
    json_: JsonOption = False,
) -> None:
    """Go on with an investigation where it stopped; a finished one only shows its result. Finished runs are never repeated. Exit codes as for investigate."""
    from ...tools.experiment.campaign import Campaign
    from ...tools.ledger.project import Project
    from ..models import chat_model

    chat_model(model, base_url)
    place = Project.existing(project)
    campaign = Campaign.resume(place, thread)
    raise typer.Exit(Session(place, campaign, thread, model, base_url, approvals, json_).run())


@dataclass(frozen=True)
class Session:
    """One run of the command on one campaign."""

    project: Project
    campaign: Campaign
    thread: str
    model: str
    base_url: str | None
    approvals: Approvals | None
    json: bool

    def run(self) -> int:
        """The whole session; returns the exit code."""
        from ...tools.ledger.guard import alone
        from ..show import Teller, stream

        teller = Teller(stream(self.json))
        view = self.campaign.view()
        teller.say(f"investigation {self.thread} of {view.endpoint}, project {self.project.folder}")
        if view.baseline is None:
            teller.say(f"estimate: {self.campaign.estimate_baseline().text}")
        if together := self.campaign.sharing():
            teller.say(together)
        lock = self.project.campaign_folder(self.thread) / "driving.lock"
        try:
            with alone(lock, f"investigation {self.thread}"):
                ending = asyncio.run(self._drive(teller))
        except asyncio.CancelledError:
            return INTERRUPTED
        except ServewrightError as error:
            if not self.campaign.view().budget.spent:
                raise
            teller.say(f"the budget was spent before anything could be concluded: {error}")
            return BUDGET
        finally:
            teller.done()
        return self._end(ending, teller)

    async def _drive(self, teller: Teller) -> Ending:
        from langgraph.runtime import RunControl

        from ..approvals import Desk
        from ..bridge import tool_server
        from ..drive import draining, drive
        from ..models import chat_model

        control = RunControl()
        folder = self.project.campaign_folder(self.thread)
        tools = tool_server(self.project.folder, self.thread, folder / "tools.log")
        model = chat_model(self.model, self.base_url)
        desk = Desk(self._policy(), self.campaign.view, teller.say)
        async with draining(control, teller.say):
            return await drive(
                folder / "checkpoints.db", self.thread, tools, model, model_name=self.model, hear=teller.hear, answer=desk.answer, control=control
            )

    def _write_report(self) -> None:
        from ...tools.report.markdown import render

        path = self.project.campaign_folder(self.thread) / "report.md"
        path.write_text(render(self.project, self.thread), encoding="utf-8")

    def _policy(self) -> Approvals:
        wanted = self.approvals or "ask"
        return "park" if wanted == "ask" and not sys.stdin.isatty() else wanted

    def _end(self, ending: Ending, teller: Teller) -> int:
        from ..approvals import waiting_text
        from ..show import result

        view, closing = self.campaign.view(), ending.state.closing
        folder = "" if self.project.folder == FOLDER.resolve() else f" --project {self.project.folder}"
        if ending.how == "drained":
            teller.say(f"stopped; what is finished is kept: servewright resume {self.thread}{folder}")
            return INTERRUPTED
        if ending.how == "waiting":
            teller.say(waiting_text(view, self.thread, folder))
            return WAITING
        if closing is None:
            raise Refused(f"investigation {self.thread} ended without a result; its record is whole: servewright ledger list{folder}")
        self._write_report()
        for line in result(view, closing, ending.state.usage):
            teller.say(line)
        concluded = any(h.verdict is not None and (h.verdict.pairs or h.verdict.verdict != "inconclusive") for h in view.hypotheses)
        untried = any(h.state in ("pending", "running") for h in view.hypotheses)
        code = BUDGET if not concluded and (untried or view.budget.spent) else DONE
        if self.json:
            shown = {
                "exit": code,
                "closing": closing.model_dump(mode="json"),
                "view": view.model_dump(mode="json"),
                "usage": ending.state.usage.model_dump(),
            }
            print(json.dumps(shown))
        return code
