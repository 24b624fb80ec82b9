"""Makes the intervention real: a candidate that can be launched."""

from __future__ import annotations

from typing import Literal

from langchain_core.tools import ToolException
from langgraph.runtime import Runtime
from langgraph.types import Command

from .crew import Crew
from .state import State
from .work import refusal


async def implementer(state: State, runtime: Runtime[Crew]) -> Command[Literal["verifier", "orchestrator"]]:
    """What can't be made is not tried, and the reason is kept."""
    try:
        made = await runtime.context.bridge.call("workspace_prepare", runtime.stream_writer, hypothesis_id=state.current)
    except ToolException as error:
        return Command(goto="orchestrator", update={"current": "", "skipped": state.skipped | {state.current: refusal(error)}})
    runtime.stream_writer({"kind": "prepared", "hypothesis": state.current, "candidate": made})
    return Command(goto="verifier")
