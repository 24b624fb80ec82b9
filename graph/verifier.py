"""Starts the experiment that tries to refute the hypothesis, and waits. The verdict is computed from the runs; nobody here writes one."""

from __future__ import annotations

from typing import Literal

from langchain_core.tools import ToolException
from langgraph.runtime import Runtime
from langgraph.types import Command

from .crew import Crew
from .state import State
from .work import Drained, WorkFailed, outcome, refusal


async def verifier(state: State, runtime: Runtime[Crew]) -> Command[Literal["verifier", "orchestrator"]]:
    """A refused start (budget, permissions) leaves the hypothesis untried, and says why. An engine that can't be measured at all ends the campaign."""
    write, estimate = runtime.stream_writer, {}
    try:
        estimate = await runtime.context.bridge.call("experiment_estimate", hypothesis_id=state.current)
        write({"kind": "experiment", "hypothesis": state.current, "estimate": estimate})
        result = await outcome(runtime, "experiment_start", hypothesis_id=state.current)
    except Drained:
        return Command(goto="verifier")
    except (ToolException, WorkFailed) as error:
        if isinstance(error, WorkFailed) and error.of in ("engine", "internal"):
            raise
        write({"kind": "skipped", "hypothesis": state.current, "reason": refusal(error)})
        return Command(goto="orchestrator", update={"current": "", "skipped": state.skipped | {state.current: refusal(error)}})
    write({"kind": "verdict", "hypothesis": state.current, "verdict": result["verdict"]})
    return Command(goto="orchestrator", update={"current": ""})
