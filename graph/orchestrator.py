"""Reads the evidence, accounts for the lever families, opens hypotheses, and says what is tried next."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.tools import ToolException
from langgraph.runtime import Runtime
from langgraph.types import Command, Send

from ..tools.contract.endpoint import Family
from ..tools.experiment.views import CampaignView, Estimate
from .accounts import FAMILIES, last_words, untouched
from .crew import Crew
from .gate import waiting
from .state import Assignment, Plan, Settled, State, Usage
from .work import overview, refusal

MAX_ROUNDS = 3
"""A round of investigation follows when the stack has grown since the last one: the bottleneck may have moved."""
Next = Literal["orchestrator", "investigator", "implementer", "gate", "closer"]


async def orchestrator(state: State, runtime: Runtime[Crew]) -> Command[Next]:
    """One decision a visit: register what was found, then try a hypothesis, or look again, or ask a person, or close."""
    update = await register(state, runtime)
    state = state.model_copy(update=update)
    view = await overview(runtime)
    pending = [h.id for h in view.hypotheses if h.state in ("pending", "running") and h.id not in state.skipped]
    if view.budget.spent:
        return Command(goto="closer", update=update)
    if state.round == 0 or (not pending and await another_round(view, state, runtime)):
        return await open_round(view, state, runtime, update)
    if pending:
        order, cost = await ranked(pending, state, runtime)
        return Command(goto="implementer", update={**update, "order": order, "current": order[0], "usage": cost})
    if any(h not in state.skipped for h in waiting(view)):
        return Command(goto="gate", update=update)
    return Command(goto="closer", update=update)


async def register(state: State, runtime: Runtime[Crew]) -> dict[str, Any]:
    """Propose what the investigators found. Repeating it is safe: the same hypothesis is registered once. A family keeps its first reason: it was measured."""
    settled: list[Settled] = []
    for handed in state.handed[state.registered :]:
        if handed.finding.nothing is not None:
            settled.append(handed.finding.nothing)
        for hypothesis in handed.finding.hypotheses:
            try:
                made = await runtime.context.bridge.call("experiment_propose", hypothesis=hypothesis.model_dump(mode="json"))
                runtime.stream_writer({"kind": "proposed", "hypothesis": made})
            except ToolException as error:
                settled.append(Settled(family=handed.family, fate="put_off", reason=f"{hypothesis.title}: {refusal(error)}"[:600]))
    return {"registered": len(state.handed), "settled": {**last_words(settled, {}), **state.settled}}


async def another_round(view: CampaignView, state: State, runtime: Runtime[Crew]) -> bool:
    """The stack has grown, rounds are left, and an experiment can be paid for."""
    if state.round >= MAX_ROUNDS or len(view.stack.accepted) <= state.stack_size or not view.hypotheses:
        return False
    estimate = await runtime.context.bridge.call("experiment_estimate", hypothesis_id=view.hypotheses[-1].id)
    return Estimate.model_validate(estimate).affordable


async def open_round(view: CampaignView, state: State, runtime: Runtime[Crew], update: dict[str, Any]) -> Command[Next]:
    """Send investigators out. A first round leaves no family without an investigator or a reason, whatever the model says."""
    number = state.round + 1
    families = untouched(view, state) if number == 1 else worth_another_look(state)
    question = f"Task: plan round {number}. Families to decide on: {', '.join(families)}. Accepted so far: {', '.join(view.stack.changes) or 'nothing'}."
    plan, _, cost = await runtime.context.ask("orchestrator", question, Plan)
    assignments = [a for a in plan.assignments if a.family in families] if plan else []
    settled = [s for s in plan.settled if s.family in families and s.fate != "tried"] if plan else []
    decided = [*(a.family for a in assignments), *(s.family for s in settled)]
    if number == 1 or plan is None:
        assignments += [Assignment(family=f, question="Is there anything in this family that the evidence speaks for?") for f in families if f not in decided]
    first_only = settled if number == 1 else []
    update = {**update, "round": number, "stack_size": len(view.stack.accepted), "settled": last_words(first_only, state.settled), "usage": cost}
    seen: dict[Family, Assignment] = {a.family: a.model_copy(update={"round": number}) for a in assignments}
    runtime.stream_writer({"kind": "round", "number": number, "families": list(seen), "settled": [s.model_dump() for s in first_only]})
    return Command(goto=[Send("investigator", a) for a in seen.values()] or "orchestrator", update=update)


def worth_another_look(state: State) -> list[Family]:
    """A new stack has new evidence: what was tried, or ruled out by the old evidence, may be open again."""
    return [f for f in FAMILIES if f not in state.settled or state.settled[f].fate == "ruled_out"]


async def ranked(pending: list[str], state: State, runtime: Runtime[Crew]) -> tuple[list[str], Usage]:
    """The pending hypotheses, first to be tried first. The model is asked when there is something new to rank."""
    known = [h for h in state.order if h in pending]
    if len(pending) == 1 or set(known) == set(pending):
        return known or pending, Usage()
    plan, _, cost = await runtime.context.ask("orchestrator", f"Task: rank. Pending hypotheses: {', '.join(pending)}.", Plan)
    chosen = [h for h in dict.fromkeys(plan.order if plan else []) if h in pending]
    return chosen + [h for h in pending if h not in chosen], cost
