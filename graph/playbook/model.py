"""The playbook as a chat model: the same graph, the same tools and the same messages as a real one, and no key.

Stateless: each reply is derived from the messages alone, so a resumed campaign goes on where it was.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from ...tools.contract.endpoint import Family
from ..state import Assignment, Finding, Plan
from .facts import Facts, NeedsSimulation, read
from .rules import PROPOSING, RULES, investigate

Call = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""


class PlaybookChatModel(BaseChatModel):
    """Answers an investigator's or an orchestrator's question with tool calls, the last of which is the structured answer."""

    @property
    def _llm_type(self) -> str:
        return "playbook"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"families": sorted(RULES)}

    def bind_tools(
        self, tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool], *, tool_choice: str | None = None, **kwargs: Any
    ) -> Runnable[Any, AIMessage]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: CallbackManagerForLLMRun | None = None, **kwargs: Any
    ) -> ChatResult:
        names = {tool["function"]["name"] for tool in kwargs.get("tools", [])}
        question = str(next(m.content for m in messages if isinstance(m, HumanMessage)))
        calls = _plan(question, messages) if Plan.__name__ in names else _investigate(question, messages)
        step = sum(isinstance(m, AIMessage) for m in messages)
        made = [{"name": name, "args": args, "id": f"call_{step}_{i}", "type": "tool_call"} for i, (name, args) in enumerate(calls)]
        reply = AIMessage("", tool_calls=made, usage_metadata=UsageMetadata(input_tokens=0, output_tokens=0, total_tokens=0))
        return ChatResult(generations=[ChatGeneration(message=reply)])


def playbook() -> PlaybookChatModel:
    return PlaybookChatModel()


def _investigate(question: str, messages: Sequence[BaseMessage]) -> list[Call]:
    """Read, simulate what the rule asks for, answer."""
    family = _family(question)
    facts = read(messages)
    if not isinstance(facts, Facts):
        return [(name, {"family": family} if name == "config_knobs" else {}) for name in facts]
    try:
        finding = investigate(family, facts)
    except NeedsSimulation as needs:
        return [("experiment_simulate", {"set": change}) for change in needs.changes]
    return [(Finding.__name__, finding.model_dump(mode="json", exclude_defaults=True))]


def _plan(question: str, messages: Sequence[BaseMessage]) -> list[Call]:
    """Assign the families whose rules may propose something, settle the others, and rank what is pending."""
    facts = read(messages)
    if not isinstance(facts, Facts):
        return [(name, {"limit": 60} if name == "config_knobs" else {}) for name in facts]
    asked: list[Family] = [family for family in RULES if re.search(rf"\b{family}\b", question.partition("Accepted")[0])]
    gain = {h.id: (h.hypothesis.prediction.low + h.hypothesis.prediction.high) / 2 for h in facts.view.hypotheses if h.state in ("pending", "running")}
    assignments = [Assignment(family=f, question=f"What does the evidence say about {f}?") for f in asked if f in PROPOSING]
    settled = [nothing for f in asked if f not in PROPOSING and (nothing := investigate(f, facts).nothing)]
    plan = Plan(assignments=assignments, settled=settled, order=sorted(gain, key=lambda h: -gain[h]))
    return [(Plan.__name__, plan.model_dump(mode="json"))]


def _family(question: str) -> Family:
    found = re.search(r"^Family: (\w+)", question, re.MULTILINE)
    named: list[Family] = [family for family in RULES if found is not None and family == found[1]]
    if not named:
        raise LookupError(f"the question names no lever family: {question[:200]}")
    return named[0]
