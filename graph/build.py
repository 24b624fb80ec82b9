"""The state machine of a campaign.

baseline -> orchestrator -> investigators (side by side) -> orchestrator -> implementer -> verifier -> orchestrator -> ... -> closer
"""

from __future__ import annotations

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from .baseline import baseline
from .closer import closer
from .crew import Crew
from .gate import gate
from .implementer import implementer
from .investigator import investigator
from .orchestrator import orchestrator
from .state import Assignment, State
from .verifier import verifier


def build(checkpointer: BaseCheckpointSaver[str] | None = None) -> CompiledStateGraph[State, Crew, State, State]:
    """The graph, ready to run. Each node's return type says where it may go."""
    graph = StateGraph(State, context_schema=Crew)
    graph.add_edge(START, "baseline")
    graph.add_node("baseline", baseline)
    graph.add_node("orchestrator", orchestrator)
    graph.add_node("investigator", investigator, input_schema=Assignment)
    graph.add_node("implementer", implementer)
    graph.add_node("verifier", verifier)
    graph.add_node("gate", gate)
    graph.add_node("closer", closer)
    return graph.compile(checkpointer=checkpointer, name="servewright")
