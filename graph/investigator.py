"""One family, one investigator: reads, simulates, and hands back a hypothesis or the reason why there is none."""

from __future__ import annotations

from typing import Literal

from langchain_core.tools import ToolException
from langgraph.runtime import Runtime
from langgraph.types import Command

from ..tools.contract.hypothesis import Hypothesis
from .crew import Crew
from .models import PLAYBOOK
from .state import Assignment, Finding, Handed, Settled, Usage
from .work import refusal


async def investigator(state: Assignment, runtime: Runtime[Crew]) -> Command[Literal["orchestrator"]]:
    """Changes nothing outside the graph's state. An answer that can't be used after one more try puts the family off, with the reason."""
    finding, cost = await _finding(state, runtime.context)
    runtime.stream_writer({"kind": "finding", "family": state.family, "finding": finding.model_dump(mode="json")})
    return Command(goto="orchestrator", update={"handed": [Handed(family=state.family, round=state.round, finding=finding)], "usage": cost})


async def _finding(task: Assignment, crew: Crew) -> tuple[Finding, Usage]:
    question = f"Family: {task.family}\nRound: {task.round}\nQuestion: {task.question}"
    cost, problem, objection = Usage(), "", ""
    for _ in range(2):
        answer, why, spent = await crew.ask("investigator", question + problem, Finding)
        cost += spent
        if answer is None:
            return _put_off(task, why), cost
        finding, objection = _checked(answer, task, crew.model_name)
        objection = objection or await _refused(finding, crew)
        if not objection:
            return finding, cost
        problem = f"\n\nYour last answer could not be used: {objection}\nYour last answer was:\n{answer.model_dump_json(exclude_defaults=True)}"
    return _put_off(task, f"the investigator's hypothesis could not be used: {objection}"), cost


def _checked(answer: Finding, task: Assignment, model: str) -> tuple[Finding, str]:
    """The finding under its proposer's true name, and what speaks against it."""
    if not answer.hypotheses and answer.nothing is None:
        return answer, "it holds neither a hypothesis nor the reason why there is none"
    other = [h.family for h in answer.hypotheses if h.family != task.family] + (
        [answer.nothing.family] if answer.nothing and answer.nothing.family != task.family else []
    )
    if other:
        return answer, f"it is about {other[0]}, but the family under investigation is {task.family}"
    if answer.nothing is not None and not answer.hypotheses and answer.nothing.fate == "tried":
        return answer, "a family counts as tried only by an experiment: propose one, or use ruled_out, not_applicable or put_off"
    return Finding(hypotheses=[_signed(h, model) for h in answer.hypotheses], nothing=None if answer.hypotheses else answer.nothing), ""


def _signed(hypothesis: Hypothesis, model: str) -> Hypothesis:
    """A model can't sign for another: only the playbook names its rule itself."""
    if model == PLAYBOOK and hypothesis.proposer.startswith(f"{PLAYBOOK}:"):
        return hypothesis
    return hypothesis.model_copy(update={"proposer": f"model:{model}"[:80]})


async def _refused(finding: Finding, crew: Crew) -> str:
    """What the engine's catalogue says against the interventions; nothing is registered by asking."""
    for hypothesis in finding.hypotheses:
        change = hypothesis.intervention
        try:
            await crew.bridge.call("config_check", set=change.set, unset=list(change.unset), env=change.env)
        except ToolException as error:
            return refusal(error)
    return ""


def _put_off(task: Assignment, why: str) -> Finding:
    return Finding(nothing=Settled(family=task.family, fate="put_off", reason=why[:600]))
