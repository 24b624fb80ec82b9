"""The hypotheses of a campaign and what may be done with each, as the ledger tells it."""

from __future__ import annotations

from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint, Permissions
from ..contract.hypothesis import Hypothesis
from ..ledger.campaigns import approved, hypothesis_id, plans, propose, recorded
from ..ledger.project import Project
from ..ledger.records import HypothesisRecorded, Nature
from ..ledger.verdicts import verdict_of
from .shams import seal_book
from .views import HypothesisState, HypothesisView


def register(project: Project, campaign: str, hypothesis: Hypothesis, *, lossless: bool, nature: Nature) -> str:
    """Seal and record; returns the id. The same hypothesis again changes nothing, its seal neither."""
    name = hypothesis_id(campaign, hypothesis)
    seal = seal_book(campaign, project.folder).seal(name, nature)
    return propose(project, campaign, hypothesis, lossless=lossless, seal=seal)


def views(project: Project, campaign: str, endpoint: Endpoint) -> list[HypothesisView]:
    """All of them, oldest first."""
    experiments = {hypothesis_id(campaign, plan.hypothesis): plan.id() for plan in plans(project, campaign) if plan.purpose != "stack"}
    return [_view(project, entry, experiments.get(entry.id()), endpoint.permissions) for entry in recorded(project, "hypothesis", HypothesisRecorded, campaign)]


def _view(project: Project, entry: HypothesisRecorded, experiment: str | None, permissions: Permissions) -> HypothesisView:
    name = entry.id()
    verdict = verdict_of(project, experiment) if experiment else None
    state: HypothesisState
    if verdict is not None:
        state, note = "judged", ""
    elif experiment is not None:
        state, note = "running", ""
    else:
        state, note = _permitted(project, name, entry.lossless, permissions)
    return HypothesisView(id=name, hypothesis=entry.hypothesis, lossless=entry.lossless, state=state, experiment=experiment, verdict=verdict, note=note)


def _permitted(project: Project, name: str, lossless: bool, permissions: Permissions) -> tuple[HypothesisState, str]:
    kind, permission = ("lossless", permissions.lossless) if lossless else ("lossy", permissions.lossy)
    answer = approved(project, name)
    if answer is False:
        return "denied", "a person said no"
    if permission == "allow" or answer:
        return "pending", ""
    if permission == "deny":
        return "denied", f"the endpoint file denies {kind} changes (permissions.{kind}: deny)"
    return "needs_approval", f"{kind} changes need a person's yes (permissions.{kind}: ask)"


def accepted(views: list[HypothesisView], project: Project, endpoint: Endpoint) -> tuple[list[HypothesisView], list[HypothesisView]]:
    """(in the stack, waiting for a person): what is supported. Lossy changes ship with an approval or a permission only; one that a person turned down is in neither."""
    inside, waiting = [], []
    for view in views:
        if view.verdict is None or view.verdict.verdict != "supported":
            continue
        answer = approved(project, f"{view.id}:ship")
        if view.lossless or endpoint.permissions.lossy == "allow" or answer:
            inside.append(view)
        elif answer is None:
            waiting.append(view)
    return inside, waiting


def stacked(original: Configuration, inside: list[HypothesisView]) -> Configuration:
    """The original with every accepted intervention made, in order."""
    configuration = original
    for view in inside:
        configuration = configuration.apply(view.hypothesis.intervention)
    return configuration
