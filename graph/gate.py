"""Where a person decides: changes that the permissions don't allow by themselves."""

from __future__ import annotations

from typing import Literal

from langchain_core.tools import ToolException
from langgraph.runtime import Runtime
from langgraph.types import Command

from ..tools.experiment.views import CampaignView
from .crew import Crew
from .state import State
from .work import overview, refusal


def waiting(view: CampaignView) -> list[str]:
    """Ids that wait for a person: to be tried, or, supported and lossy, to join the stack."""
    to_try = [h.id for h in view.hypotheses if h.state == "needs_approval"]
    return to_try + [h for h in view.stack.awaiting_approval if h not in to_try]


async def gate(state: State, runtime: Runtime[Crew]) -> Command[Literal["orchestrator"]]:
    """The tool server asks, the bridge turns its question into an interrupt, and the answer goes into the ledger: no model sees or gives it."""
    skipped: dict[str, str] = {}
    for hypothesis in waiting(await overview(runtime)):
        try:
            await runtime.context.bridge.call("experiment_ask_approval", runtime.stream_writer, hypothesis_id=hypothesis)
        except ToolException as error:
            skipped[hypothesis] = refusal(error)
    return Command(goto="orchestrator", update={"skipped": state.skipped | skipped})
