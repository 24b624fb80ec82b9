"""Server `campaign`: whole investigations for a client, each a process of its own. Needs no campaign at the start of the server."""

# No postponed annotations: the SDK resolves them outside this function, where the local resolver isn't known.
from pathlib import Path
from typing import Annotated, Literal

from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from ..tools.contract.base import Contract
from ..tools.contract.errors import BadInput, Refused
from ..tools.experiment.views import Budget, Closing, HypothesisView
from .approvals import Approval, question, record
from .arguments import HypothesisId, Thread
from .context import Desk
from .factory import Toolbox
from .investigations import Approvals, investigate, log_tail, running, stop

INSTRUCTIONS = (
    "Runs whole investigations of LLM serving endpoints: give it an endpoint file, it measures, tries hypotheses and ends with a verified result. "
    "start returns at once; an investigation takes minutes to hours; ask status now and then, result when it is closed."
)


class InvestigationView(Contract):
    thread: str
    running: bool
    """Its process is alive."""
    state: Literal["starting", "new", "measured", "closed"]
    """starting: nothing recorded yet; new: no baseline yet; measured: hypotheses are being tried; closed: result may be read."""
    verdicts: dict[str, int]
    """Verdict -> how many hypotheses have it."""
    waiting_for_a_person: tuple[str, ...]
    """Ids of hypotheses that need a yes or no."""
    budget: Budget | None
    log: tuple[str, ...]
    """The last lines of its output."""
    next: str
    """What to do now."""


def view(desk: Desk, thread: str) -> InvestigationView:
    """How the investigation stands, from its process and the ledger. Raises `BadInput` for an unknown thread."""
    from ..tools.ledger.campaigns import campaign as recorded

    folder = desk.project.folder / "campaigns" / thread
    alive = running(folder) is not None
    begun = (desk.project.folder / "ledger.db").is_file()  # only looking must not make a project
    if not begun or recorded(desk.project, thread) is None:
        if not folder.is_dir():
            raise BadInput("thread", thread, "the name of an investigation of this project; begin one with start")
        then = "ask status again in half a minute" if alive else "read log: it ended before anything was recorded; mend that and call start again"
        return InvestigationView(thread=thread, running=alive, state="starting", verdicts={}, waiting_for_a_person=(), budget=None, log=log_tail(folder), next=then)
    whole = desk.of_thread(thread).view()
    counts: dict[str, int] = {}
    for one in whole.hypotheses:
        if one.verdict is not None:
            counts[one.verdict.verdict] = counts.get(one.verdict.verdict, 0) + 1
    waiting = (*(one.id for one in whole.hypotheses if one.state == "needs_approval"), *whole.stack.awaiting_approval)
    if whole.state == "closed":
        then = "read result"
    elif alive:
        then = "ask status again in a minute or more"
    else:
        then = ("ask a person with approve, then " if waiting else "") + "call start again: it goes on where it stopped"
    return InvestigationView(
        thread=thread, running=alive, state=whole.state, verdicts=counts, waiting_for_a_person=waiting, budget=whole.budget, log=log_tail(folder), next=then
    )


def campaign_tools(desk: Desk, prefixed: bool) -> list[Tool]:
    box = Toolbox("campaign", prefixed)

    def ask(thread: Thread, hypothesis_id: HypothesisId, context: Context) -> Approval | Elicit[Approval] | None:
        campaign = desk.of_thread(thread)
        known = campaign.hypothesis(hypothesis_id)
        waits = known.state == "needs_approval" or hypothesis_id in campaign.stack().awaiting_approval
        return question(campaign, thread, known, context) if waits else None

    @box.tool("Start or resume an investigation", outside=True)
    def start(
        endpoint_path: Annotated[str, Field(max_length=4096, pattern=r"\.ya?ml$", description="Endpoint file on the server's machine: a path that ends in .yaml.")],
        thread: Annotated[Thread | None, Field(description="Name for it; by default the endpoint's name. An existing one is resumed.")] = None,
        approvals: Annotated[Approvals, Field(description="What needs a person's yes waits (park) or is not tried (deny).")] = "park",
        model: Annotated[
            str | None, Field(max_length=120, pattern=r"^[a-z0-9_-]+:[A-Za-z0-9._:/-]+$", description="Chat model of the crew, provider:name; by default rules without a model.")
        ] = None,
    ) -> InvestigationView:
        """Start a whole investigation of an endpoint as a process of its own: baseline, hypotheses, experiments, verdicts, final stack, report. It occupies the
        endpoint's hardware for minutes to hours, within the budget that the endpoint file gives. Returns at once. Calling it again with the same thread finds
        it running, resumes it where it stopped, or, if it is closed, starts nothing."""
        from ..tools.contract.endpoint import load_endpoint
        from ..tools.ledger.campaigns import closing

        path = Path(endpoint_path).expanduser()
        name = thread or load_endpoint(path).name
        if running(desk.project.campaign_folder(name)) is None and closing(desk.project, name) is None:
            investigate(desk.project, path, name, approvals, model)
        return view(desk, name)

    @box.tool("Status of an investigation", reads=True)
    def status(thread: Thread) -> InvestigationView:
        """How an investigation stands: running or not, verdicts so far, what waits for a person, budget, the last lines of its output. Free."""
        return view(desk, thread)

    @box.tool("Ask a person about a change", name="approve", destroys=True)
    def approve(thread: Thread, hypothesis_id: HypothesisId, answer: Annotated[ElicitationResult[Approval], Resolve(ask)]) -> HypothesisView:
        """Put a change that waits for a yes before a person and record the answer (see waiting_for_a_person in status). You can't answer for the person. Then call
        start again, so that the investigation goes on with it."""
        campaign = desk.of_thread(thread)
        if isinstance(answer, AcceptedElicitation) and answer.data is None:
            raise Refused(f"hypothesis {hypothesis_id} doesn't wait for a person; nothing was asked")
        return record(campaign, hypothesis_id, answer)

    @box.tool("Result of an investigation", reads=True)
    def result(thread: Thread) -> Closing:
        """The result of a closed investigation: one sentence, baseline and final capacity, the final stack's verdict, the command line of the winning server, where
        the report and the ledger lie. Refused while it is open: ask status."""
        campaign = desk.of_thread(thread)
        if campaign.view().state != "closed":
            raise Refused(f"investigation {thread} isn't closed yet; status says how it stands and what to do")
        return campaign.close()

    @box.tool("Stop an investigation", name="stop", destroys=True)
    def end(thread: Thread) -> InvestigationView:
        """Ask a running investigation to end after the step it is in, and free the hardware. What it measured is kept; start resumes it."""
        stop(desk.project.folder / "campaigns" / thread)
        return view(desk, thread)

    return box.tools
