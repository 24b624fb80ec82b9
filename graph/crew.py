"""Who works: the models, the tools each role may read with, and how a role is asked."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelCallLimitMiddleware, ToolCallLimitMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.errors import GraphBubbleUp

from ..tools.contract.errors import ServewrightError
from .state import Reply, Usage

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from .bridge import Bridge

Role = Literal["orchestrator", "investigator"]
"""Roles that a model plays. The implementer and the verifier are code: nobody writes a candidate by hand, nor a verdict."""
R = TypeVar("R", bound=Reply)

READS: dict[Role, tuple[str, ...]] = {
    "orchestrator": ("ledger_overview", "telemetry_evidence", "config_endpoint", "config_knobs", "traffic_describe", "ledger_list", "ledger_show"),
    "investigator": (
        "ledger_overview",
        "telemetry_evidence",
        "telemetry_observables",
        "telemetry_devices",
        "config_endpoint",
        "config_knobs",
        "config_check",
        "traffic_describe",
        "experiment_simulate",
        "ledger_list",
        "ledger_show",
    ),
}
"""What each role reads with. Nothing here changes anything."""


@dataclass(frozen=True)
class Limits:
    """Bounds on one question to one role. A model that loops runs into them; the campaign goes on without its answer."""

    model_calls: int = 14
    tool_calls: int = 40
    seconds: float = 900


@dataclass(frozen=True)
class Crew:
    """The graph's context: what nodes work with and checkpoints do not hold."""

    bridge: Bridge
    model: BaseChatModel
    model_name: str
    limits: Limits = field(default_factory=Limits)

    async def ask(self, role: Role, question: str, reply: type[R]) -> tuple[R | None, str, Usage]:
        """Ask a role for a `reply`. Gives (reply, "", cost), or (None, why there is none, cost). Raises only what isn't the model's doing."""
        limits: list[AgentMiddleware[Any, Any, Any]] = [
            ModelCallLimitMiddleware(run_limit=self.limits.model_calls, exit_behavior="end"),
            ToolCallLimitMiddleware(run_limit=self.limits.tool_calls, exit_behavior="continue"),
        ]
        agent = create_agent(
            self.model,
            self.bridge.tools(READS[role]),
            system_prompt=prompt(role),
            response_format=ToolStrategy(reply),
            middleware=limits,
        )
        messages: list[Any] = [HumanMessage(question)]
        cost, why = Usage(), ""
        for _ in range(2):
            try:
                async with asyncio.timeout(self.limits.seconds):
                    out: dict[str, Any] = await agent.ainvoke({"messages": messages})
            except (GraphBubbleUp, ServewrightError):
                raise
            except TimeoutError:
                return None, f"the model gave no answer within {self.limits.seconds:g} s", cost
            except Exception as error:
                # Whatever a provider's client raises (network, quota, nonsense on the wire) costs this answer, never the campaign.
                return None, f"the model failed ({type(error).__name__}: {str(error)[:200]})", cost
            cost += _cost(out["messages"][len(messages) :])
            answer = out.get("structured_response")
            if isinstance(answer, reply):
                return answer, "", cost
            why = f"the model gave no usable {reply.__name__}"
            messages = [*out["messages"], HumanMessage(f"That is no answer. Call {reply.__name__} with your answer; plain text is not read.")]
        return None, why, cost


def prompt(role: Role) -> str:
    """The role's system prompt."""
    return (files("servewright.prompts") / f"{role}.md").read_text(encoding="utf-8")


def _cost(messages: list[AnyMessage]) -> Usage:
    cost = Usage()
    for message in messages:
        if isinstance(message, AIMessage):
            tokens = message.usage_metadata
            cost += Usage(
                requests=1,
                uncounted=0 if tokens else 1,
                input_tokens=tokens["input_tokens"] if tokens else 0,
                output_tokens=tokens["output_tokens"] if tokens else 0,
            )
    return cost
