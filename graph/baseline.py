"""First of all: the endpoint as it is, and its noise floor."""

from __future__ import annotations

from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import Command

from .crew import Crew
from .state import State
from .work import Drained, outcome


async def baseline(state: State, runtime: Runtime[Crew]) -> Command[Literal["baseline", "orchestrator"]]:
    """Measured once; a second call finds it in the ledger. A baseline that can't be measured ends the campaign (`WorkFailed`)."""
    try:
        await outcome(runtime, "experiment_baseline_start")
    except Drained:
        return Command(goto="baseline")
    return Command(goto="orchestrator")
