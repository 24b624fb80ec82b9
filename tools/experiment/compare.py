"""A judged A/B of two configurations of one endpoint, without agents: the same floor, pairs, checks and ledger as in a campaign."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from ..contract.base import digest
from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint
from ..contract.errors import BadInput
from ..contract.experiment import ExperimentPlan
from ..contract.hypothesis import Check, Hypothesis, Intervention, Prediction
from ..contract.verdict import Verdict
from ..ledger.campaigns import plans, register
from ..ledger.project import Project
from ..serving.engines import engine_for
from . import planning
from .campaign import Campaign, original
from .confirm import carry_out
from .runner import Hear
from .views import BaselineView


@dataclass(frozen=True)
class Comparison:
    thread: str
    experiment: str
    baseline: BaselineView
    verdict: Verdict


def compare(project: Project, a: Endpoint, b: Configuration, hear: Hear, cancel: threading.Event) -> Comparison:
    """Is B better than A inside the SLA? Called again with the same two it goes on where it stopped, or returns what was found.

    Raises `BadInput` where the two are the same or B isn't one that the engine takes, `EngineFailure` when A itself doesn't serve.
    """
    a = a.model_copy(update={"measurement": a.measurement.model_copy(update={"shams": 0, "screen": "none"})})
    thread = f"compare-{a.name[:32]}-{digest([a.model_dump(mode='json'), b.model_dump(mode='json')])[:10]}"
    engine = engine_for(a)
    change = difference(engine.check(original(a)), engine.check(b))  # before anything is made
    campaign = Campaign.open(project, a, thread)
    baseline = campaign.baseline(hear, cancel)
    with campaign.alone(cancel):
        plan = _plan(campaign, change)
        verdict = carry_out(campaign.runner, plan, campaign.bench, campaign.bench, hear, cancel)
    campaign.close()
    return Comparison(thread, plan.id(), baseline, verdict)


def _plan(campaign: Campaign, change: Intervention) -> ExperimentPlan:
    """Registered once: the whole error budget of the file goes into the one question."""
    if known := plans(campaign.project, campaign.thread):
        return known[0]
    candidate = campaign.check(change)
    view, now = campaign.propose(question(campaign, change)), campaign.measured()
    assert now is not None
    plan = planning.plan_for(campaign.project, campaign.thread, campaign.endpoint, now, view, campaign.original, candidate)
    plan = plan.model_copy(update={"purpose": "compare", "alpha": campaign.endpoint.alpha, "number": 1})
    register(campaign.project, plan)
    return plan


def difference(a: Configuration, b: Configuration) -> Intervention:
    """What makes B out of A. Raises `BadInput` where it is nothing, or the engines differ."""
    if a.kind != b.kind:
        raise BadInput("engine.kind", b.kind, f"the same engine as the first configuration's ({a.kind})")
    changed = a.difference(b)
    if not changed:
        raise BadInput("configurations", "(equal)", "two that differ in an engine argument or variable")
    gone_variables = sorted(set(a.env) - set(b.env))
    if gone_variables:
        raise BadInput("engine.env", gone_variables[0], "a value in both configurations: a variable can be changed, not taken away")
    names = [name for name in changed if not name.startswith("env ")]
    return Intervention(
        set={name: b.args[name] for name in names if name in b.args},
        unset=tuple(name for name in names if name not in b.args),
        env={name: value for name, value in b.env.items() if a.env.get(name) != value},
    )


def question(campaign: Campaign, change: Intervention) -> Hypothesis:
    """The user's question as a hypothesis: B is better, unless it turns out slower."""
    catalogue, least = campaign.catalogue, campaign.endpoint.minimum_effect
    family = sorted(catalogue.families(change))[0]
    shown = ", ".join([*(f"{name}={value}" for name, value in change.set.items()), *(f"without {name}" for name in change.unset), *change.env])
    return Hypothesis(
        family=family,
        title=f"Compare: {shown}"[:120],
        explanation="The user asks whether the second configuration serves more requests inside the SLA than the first; no mechanism is claimed.",
        intervention=change,
        prediction=Prediction(low=least, high=max(1.0, 2 * least)),
        falsifiers=(Check(observable="capacity_rps_per_gpu", arm="ratio", op="<", value=1.0),),
        activation=catalogue.activation(change),
        lossless=catalogue.lossless(change),
        proposer="user",
    )
