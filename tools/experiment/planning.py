"""From what is known to a registered plan: alpha, arms, noise floor; and the small facts around it."""

from __future__ import annotations

import platform
from importlib.metadata import version

from ..contract.base import digest
from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint
from ..contract.experiment import ExperimentPlan
from ..contract.hypothesis import Check, Hypothesis, Intervention, Prediction
from ..contract.verdict import NoiseFloor
from ..judgement.budget import ErrorBudget
from ..judgement.mde import minimum_detectable_effect
from ..knobs.catalogue import Catalogue
from ..ledger import campaigns
from ..ledger.project import Project
from ..serving.cores import shared, split_cores
from ..serving.engines import engine_for
from .measured import Measured
from .views import Fate, HypothesisView

PACKAGES = ("servewright", "langgraph", "langchain", "mcp", "numpy", "scipy", "polars")
FAR = 0.2
"""A held-out capacity that differs from the pilot's by more than this is worth a warning."""


def versions() -> dict[str, str]:
    return {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}


def catalogue_of(endpoint: Endpoint) -> Catalogue:
    """The catalogue of the installed engine."""
    return engine_for(endpoint).catalogue


def spending(project: Project, campaign: str, endpoint: Endpoint) -> ErrorBudget:
    """The error budget as the ledger's experiments have spent it, in their order."""
    budget = ErrorBudget(endpoint.alpha)
    judged = {plan.id(): entry.verdict for plan, entry in campaigns.verdicts(project, campaign)}
    for plan in campaigns.plans(project, campaign):
        if plan.purpose != "hypothesis":
            continue
        budget.take(plan.alpha)
        if (verdict := judged.get(plan.id())) is not None:
            budget.record(verdict)
    return budget


def detectable(project: Project, campaign: str, endpoint: Endpoint, floor: NoiseFloor) -> float:
    """Smallest effect that the next hypothesis's pairs detect at power 0.8, a fraction."""
    alpha = spending(project, campaign, endpoint).next_alpha()
    return minimum_detectable_effect(floor, endpoint.measurement.max_pairs, alpha, min_pairs=endpoint.measurement.min_pairs)


def plan_for(project: Project, campaign: str, endpoint: Endpoint, now: Measured, view: HypothesisView, baseline: Configuration, candidate: Configuration) -> ExperimentPlan:
    """The experiment of one hypothesis against the stack so far."""
    m, number = endpoint.measurement, len(campaigns.plans(project, campaign)) + 1
    return ExperimentPlan(
        campaign=campaign,
        number=number,
        purpose="hypothesis",
        hypothesis=view.hypothesis,
        series=now.series,
        baseline=baseline,
        candidate=candidate,
        alpha=spending(project, campaign, endpoint).next_alpha(),
        minimum_effect=view.hypothesis.minimum_effect or endpoint.minimum_effect,
        min_pairs=m.min_pairs,
        max_pairs=m.max_pairs,
        screen=m.screen,
        seed=_seed(endpoint, campaign, number),
        floor=now.floor,
        lossless=view.lossless,
    )


def stack_plan(
    project: Project, campaign: str, endpoint: Endpoint, now: Measured, views: list[HypothesisView], baseline: Configuration, stack: Configuration
) -> ExperimentPlan:
    """The final stack against the original baseline. The same stack gives the same plan again."""
    known = [plan for plan in campaigns.plans(project, campaign) if plan.purpose == "stack" and plan.candidate == stack]
    if known:
        return known[-1]
    m, number = endpoint.measurement, len(campaigns.plans(project, campaign)) + 1
    changed = stack.difference(baseline)
    names = [name for name in changed if not name.startswith("env ")]
    intervention = Intervention(
        set={name: stack.args[name] for name in names if name in stack.args},
        unset=tuple(name for name in names if name not in stack.args),
        env={name: value for name, value in stack.env.items() if f"env {name}" in changed},
    )
    alone = [view.verdict.effect for view in views if view.verdict and view.verdict.effect is not None]
    together = 1.0
    for effect in alone:
        together *= 1 + effect
    hypothesis = Hypothesis(
        family=views[0].hypothesis.family,
        title=f"The {len(views)} accepted changes together",
        explanation="Each change was supported on top of those before it. Gains need not add up, so the stack is measured as a whole against the original baseline.",
        intervention=intervention,
        prediction=Prediction(low=min(0.0, together - 1), high=max(endpoint.minimum_effect, (together - 1) * 1.25)),
        falsifiers=(Check(observable="capacity_rps_per_gpu", arm="ratio", op="<", value=1.0),),
        activation=tuple(check for view in views for check in view.hypothesis.activation if check.arm == "candidate" and _still_true(check, stack))[:12]
        or catalogue_of(endpoint).activation(intervention)[:12],
        lossless=all(view.lossless for view in views),
        proposer="campaign",
    )
    return ExperimentPlan(
        campaign=campaign,
        number=number,
        purpose="stack",
        hypothesis=hypothesis,
        series=now.series,
        baseline=baseline,
        candidate=stack,
        alpha=spending(project, campaign, endpoint).stack_alpha,
        minimum_effect=endpoint.minimum_effect,
        min_pairs=m.min_pairs,
        max_pairs=m.max_pairs,
        screen="none",
        seed=_seed(endpoint, campaign, number),
        floor=now.floor,
        lossless=hypothesis.lossless,
    )


def _still_true(check: Check, stack: Configuration) -> bool:
    """A later change may have set the same argument anew: only what the stack really has is asked of it, and of arguments alone."""
    name = check.observable.removeprefix("config.")
    return check.observable.startswith("config.") and stack.args.get(name) == check.value


def _seed(endpoint: Endpoint, campaign: str, number: int) -> int:
    return int(digest([endpoint.measurement.seed, campaign, number])[:8], 16)


def warnings(endpoint: Endpoint, now: Measured) -> tuple[str, ...]:
    """What a reader must know of the baseline before believing anything built on it."""
    found = []
    reference = now.series.reference_capacity / endpoint.hardware.gpus
    if abs(now.capacity / reference - 1) > FAR:
        found.append(f"the held-out part of the trace has a capacity of {now.capacity:.3g} requests/s/GPU, its first part {reference:.3g}: they are different traffic")
    if now.floor.drift:
        found.append(now.floor.drift)
    if endpoint.measurement.mode == "http" and (together := shared(*split_cores(endpoint))):
        found.append(together)
    for record in now.runs:
        found += [f"floor run {record.pair + 1}: {reason}" for reason in (record.measurement.invalid if record.measurement else ())]
    return tuple(dict.fromkeys(found))


def fates(project: Project, campaign: str) -> dict[str, tuple[Fate, str]]:
    """Family -> how it ended and why; the last word counts."""
    found: dict[str, tuple[Fate, str]] = {}
    for entry in project.ledger.entries("note", campaign=campaign):
        data = entry.body["data"]
        if "family" in data:
            found[data["family"]] = (data["fate"], data["reason"])
    return found


def command(endpoint: Endpoint, configuration: Configuration) -> tuple[str, ...]:
    """The server's argument list as a user would start it: the engine's own entry point, and the arguments that were measured."""
    model = endpoint.model.path or endpoint.model.name
    flags = catalogue_of(endpoint).argv(configuration.args)
    if configuration.kind == "sim":
        start = ["python", "-m", "servewright.tools.simulator.server", "--model", endpoint.model.name, "--hardware", endpoint.hardware.profile, "--gpus", str(endpoint.hardware.gpus)]
    else:
        start = ["vllm", "serve", model, "--served-model-name", endpoint.model.name]
    variables = [f"{name}={value}" for name, value in sorted(configuration.env.items())]
    return (*(["env", *variables] if variables else []), *start, *flags)
