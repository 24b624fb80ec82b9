"""The end: the stack is measured as a whole, every family gets its fate, sealed facts are opened."""

from __future__ import annotations

from typing import Literal

from langchain_core.tools import ToolException
from langgraph.runtime import Runtime
from langgraph.types import Command

from ..tools.experiment.views import Closing
from .accounts import close_accounts
from .crew import Crew
from .state import State
from .work import Drained, WorkFailed, outcome, overview, refusal


async def closer(state: State, runtime: Runtime[Crew]) -> Command[Literal["closer", "__end__"]]:
    """Entered again after a crash, it measures nothing twice and closes once."""
    view = await overview(runtime)
    if view.state != "closed":
        try:
            await outcome(runtime, "experiment_stack_start")
        except Drained:
            return Command(goto="closer")
        except (ToolException, WorkFailed) as error:
            if isinstance(error, WorkFailed) and error.of in ("engine", "internal"):
                raise
            runtime.stream_writer({"kind": "skipped", "hypothesis": "stack", "reason": refusal(error)})
        for settled in close_accounts(await overview(runtime), state):
            await runtime.context.bridge.call("ledger_family", family=settled.family, fate=settled.fate, reason=settled.reason)
    closing = Closing.model_validate(await runtime.context.bridge.call("experiment_close"))
    return Command(goto="__end__", update={"closing": closing})
