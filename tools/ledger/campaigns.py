"""What a campaign writes down beside its runs, and the rules of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ..contract.base import Contract
from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint
from ..contract.errors import Refused
from ..contract.experiment import STOPPING_RULE, ExperimentPlan
from ..contract.hypothesis import Hypothesis
from ..contract.series import Series
from .history import runs
from .project import Project
from .records import (
    Approval,
    CampaignClosed,
    CampaignOpened,
    FloorRecorded,
    HypothesisRecorded,
    Note,
    Opening,
    SeriesOpened,
    StackRecorded,
    Summary,
    VerdictRecorded,
)
from .seals import opens

T = TypeVar("T", bound=Contract)


def open_campaign(project: Project, thread: str, endpoint: Endpoint, *, seed: int, versions: Mapping[str, str]) -> CampaignOpened:
    """Begin. A second call for the thread returns what the first one wrote (compare its endpoint when resuming)."""
    body = CampaignOpened(campaign=thread, endpoint=endpoint, alpha=endpoint.alpha, seed=seed, versions=dict(versions))
    return CampaignOpened.model_validate(project.ledger._write("campaign_opened", body, key=thread).body)


def open_series(project: Project, campaign: str, series: Series) -> str:
    """Returns the series' id. One that another campaign opened is the same series: its runs may be compared."""
    with project.ledger.transaction():
        require_open(project, campaign)
        project.ledger._write("series_opened", SeriesOpened(campaign=campaign, series=series), key=series.id())
    return series.id()


def propose(project: Project, campaign: str, hypothesis: Hypothesis, *, lossless: bool, seal: str) -> str:
    """Returns the hypothesis's id (`HypothesisRecorded(...).id()`). The same hypothesis again returns the same id and writes nothing.

    `lossless`: the catalogue's word. `seal`: from `SealBook.seal`, for every hypothesis.
    """
    body = HypothesisRecorded(campaign=campaign, hypothesis=hypothesis, lossless=lossless, seal=seal)
    with project.ledger.transaction():
        require_open(project, campaign)
        project.ledger._write("hypothesis", body, key=body.id())
    return body.id()


def hypothesis_id(campaign: str, hypothesis: Hypothesis) -> str:
    """The id that `propose` will give."""
    return HypothesisRecorded(campaign=campaign, hypothesis=hypothesis, lossless=True, seal="0" * 64).id()


def register(project: Project, plan: ExperimentPlan) -> str:
    """Register an experiment before its first run; returns its id. Idempotent for the same plan.

    Raises `Refused` when the campaign isn't open, the series, floor or hypothesis isn't recorded, the number is taken, the rule isn't
    this version's, the arms differ in something that the hypothesis doesn't change, or its alpha is more than the campaign has left.
    """
    ledger = project.ledger
    with ledger.transaction():
        if ledger.find("experiment", plan.id()) is not None:
            return plan.id()
        require_open(project, plan.campaign)
        if plan.rule != STOPPING_RULE:
            raise Refused(f"experiment {plan.number}: rule {plan.rule} isn't this version's ({STOPPING_RULE})")
        if ledger.find("series_opened", plan.series.id()) is None:
            raise Refused(f"experiment {plan.number}: series {plan.series.id()} isn't opened")
        if floor_entry(project, plan) is None:
            raise Refused(f"experiment {plan.number}: its noise floor isn't one that was recorded (record_floor)")
        if plan.purpose != "stack" and ledger.find("hypothesis", hypothesis_id(plan.campaign, plan.hypothesis)) is None:
            raise Refused(f"experiment {plan.number}: its hypothesis isn't recorded")
        others = plans(project, plan.campaign)
        if any(other.number == plan.number for other in others):
            raise Refused(f"experiment {plan.number} is another plan already; a plan can't be changed once registered")
        if plan.alpha > alpha_left(project, plan.campaign) * (1 + 1e-9):
            raise Refused(f"experiment {plan.number}: alpha {plan.alpha:g} is more than the {alpha_left(project, plan.campaign):g} that the campaign has left")
        change = plan.hypothesis.intervention
        allowed = {*change.set, *change.unset, *(f"env {name}" for name in change.env)}
        if stray := sorted(set(plan.baseline.difference(plan.candidate)) - allowed):
            raise Refused(f"experiment {plan.number}: the arms differ in {', '.join(stray)}, which the hypothesis doesn't change")
        if plan.purpose != "stack" and any(other.purpose != "stack" and other.hypothesis == plan.hypothesis for other in others):
            raise Refused(f"experiment {plan.number}: its hypothesis has an experiment already; one idea is tested once")
        ledger._write("experiment", plan, key=plan.id())
    return plan.id()


def alpha_left(project: Project, campaign: str) -> float:
    """The campaign's alpha less that of every experiment, open ones too, but for those kept and those never confirmed (`judgement.budget` says why)."""
    opened = require_open(project, campaign)
    judged = {entry.key: VerdictRecorded.model_validate(entry.body).verdict for entry in project.ledger.entries("verdict", campaign=campaign)}
    returned = {name for name, verdict in judged.items() if verdict.verdict == "supported" or verdict.pairs == 0}
    return opened.alpha - sum(plan.alpha for plan in plans(project, campaign) if plan.id() not in returned)


def record_stack(project: Project, campaign: str, accepted: Sequence[str], configuration: Configuration) -> None:
    """The interventions that stand together now. Each must have a supported verdict; a lossy one also permission or a person's yes."""
    ledger = project.ledger
    body = StackRecorded(campaign=campaign, accepted=tuple(accepted), configuration=configuration)
    with ledger.transaction():
        opened = require_open(project, campaign)
        supported = {hypothesis_id(campaign, plan.hypothesis) for plan, verdict in verdicts(project, campaign) if verdict.verdict.verdict == "supported"}
        for name in accepted:
            entry = ledger.find("hypothesis", name)
            if entry is None or name not in supported:
                raise Refused(f"stack: hypothesis {name} has no supported verdict in campaign {campaign}")
            if not entry.body["lossless"] and opened.endpoint.permissions.lossy != "allow" and not approved(project, f"{name}:ship"):
                raise Refused(f"stack: {name} is lossy and nobody approved shipping it")
        previous = ledger.entries("stack", campaign=campaign)
        if not previous or StackRecorded.model_validate(previous[-1].body) != body:
            ledger._write("stack", body)


def approve(project: Project, approval: Approval) -> None:
    """Write down a person's (or a policy's) answer; the last one on a subject counts."""
    with project.ledger.transaction():
        require_open(project, approval.campaign)
        project.ledger._write("approval", approval)


def approved(project: Project, subject: str) -> bool | None:
    """The last answer on the subject; None when there is none."""
    answers = [entry.body["answer"] for entry in project.ledger.entries("approval") if entry.body["subject"] == subject]
    return answers[-1] if answers else None


def note(project: Project, author: str, text: str, *, campaign: str | None = None, data: Mapping[str, Any] | None = None, key: str | None = None) -> None:
    """Free text worth keeping: what was learned, why something was put off. With a key it is written once."""
    project.ledger.append("note", Note(campaign=campaign, author=author, text=text, data=dict(data or {})), key=key)


def close_campaign(project: Project, campaign: str, *, openings: Sequence[Opening], summary: Summary) -> CampaignClosed:
    """The end: nothing can be added to the campaign afterwards. Idempotent.

    Raises `Refused` when a run still goes, or when the openings don't open the seals of exactly this campaign's hypotheses.
    """
    ledger = project.ledger
    with ledger.transaction():
        if (entry := ledger.find("campaign_closed", campaign)) is not None:
            return CampaignClosed.model_validate(entry.body)
        require_open(project, campaign)
        if busy := [run.id for run in runs(project, campaign=campaign) if run.status in ("reserved", "running") and run.owner.alive()]:
            raise Refused(f"campaign {campaign}: still being measured: {', '.join(busy)}")
        seals = {str(entry.key): str(entry.body["seal"]) for entry in ledger.entries("hypothesis", campaign=campaign)}
        wrong = [opening.hypothesis for opening in openings if not opens(seals.get(opening.hypothesis, ""), opening)]
        missing = sorted(set(seals) - {opening.hypothesis for opening in openings})
        if wrong or missing:
            raise Refused(f"campaign {campaign}: seals not opened: {', '.join(wrong + missing)}")
        counts = dict(Counter(entry.kind for entry in ledger.entries(campaign=campaign)))
        body = CampaignClosed(campaign=campaign, openings=tuple(openings), summary=summary, entries=counts)
        return CampaignClosed.model_validate(ledger._write("campaign_closed", body, key=campaign).body)


def require_open(project: Project, campaign: str) -> CampaignOpened:
    """The campaign's opening. Raises `Refused` when it wasn't opened, or is closed."""
    entry = project.ledger.find("campaign_opened", campaign)
    if entry is None:
        raise Refused(f"campaign {campaign} isn't opened in {project.folder}")
    if project.ledger.find("campaign_closed", campaign) is not None:
        raise Refused(f"campaign {campaign} is closed; open another one")
    return CampaignOpened.model_validate(entry.body)


def campaign(project: Project, thread: str) -> CampaignOpened | None:
    entry = project.ledger.find("campaign_opened", thread)
    return entry and CampaignOpened.model_validate(entry.body)


def closing(project: Project, thread: str) -> CampaignClosed | None:
    entry = project.ledger.find("campaign_closed", thread)
    return entry and CampaignClosed.model_validate(entry.body)


def recorded(project: Project, kind: str, type_: type[T], campaign: str | None = None) -> list[T]:
    """All bodies of a kind, oldest first: `recorded(project, "hypothesis", HypothesisRecorded, thread)`."""
    return [type_.model_validate(entry.body) for entry in project.ledger.entries(kind, campaign=campaign)]


def plans(project: Project, campaign: str) -> list[ExperimentPlan]:
    """The campaign's registered experiments, by number."""
    return sorted(recorded(project, "experiment", ExperimentPlan, campaign), key=lambda plan: plan.number)


def plan(project: Project, experiment: str) -> ExperimentPlan:
    """Raises `Refused` when no such experiment is registered."""
    entry = project.ledger.find("experiment", experiment)
    if entry is None:
        raise Refused(f"experiment {experiment} isn't registered; only a registered one can be measured and judged")
    return ExperimentPlan.model_validate(entry.body)


def verdicts(project: Project, campaign: str) -> list[tuple[ExperimentPlan, VerdictRecorded]]:
    """Judged experiments with their verdicts, by number."""
    by_experiment = {verdict.experiment: verdict for verdict in recorded(project, "verdict", VerdictRecorded, campaign)}
    return [(plan, by_experiment[plan.id()]) for plan in plans(project, campaign) if plan.id() in by_experiment]


def floor_entry(project: Project, plan: ExperimentPlan) -> FloorRecorded | None:
    """The recorded floor that the plan was registered with."""
    return next((floor for floor in reversed(recorded(project, "floor", FloorRecorded)) if floor.floor == plan.floor), None)
