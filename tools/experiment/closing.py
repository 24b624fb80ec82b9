"""The end of a campaign: seals opened, the result in one sentence, the report written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contract.configuration import Configuration
from ..contract.errors import Refused
from ..contract.verdict import Verdict
from ..ledger import campaigns
from ..ledger.records import CampaignClosed, Summary
from ..ledger.verdicts import record_verdict, verdict_of
from .shams import seal_book
from .views import Closing

if TYPE_CHECKING:
    from .campaign import Campaign


def close(campaign: Campaign) -> Closing:
    """Idempotent. Raises `Refused` while something may still be tried and the budget has room, or while the final stack isn't measured."""
    known = campaigns.closing(campaign.project, campaign.thread)
    if known is None:
        known = _close(campaign)
    return _closing(campaign, known)


def _close(campaign: Campaign) -> CampaignClosed:
    now, budget = campaign.measured(), campaign.budget()
    affords = now is not None and campaign.affords_another()
    for view in campaign.hypotheses():
        if view.state == "running" and view.experiment is not None and not affords:
            record_verdict(campaign.project, view.experiment, closed=True)
    open_ones = [view.id for view in campaign.hypotheses() if view.state in ("pending", "running")]
    if open_ones and affords:
        raise Refused(f"{', '.join(open_ones)} may still be tried and the budget has room: run them before closing")
    stack = campaign.stack()
    if stack.accepted and stack_verdict(campaign) is None and not budget.spent:
        raise Refused("the final stack isn't measured against the original baseline: measure it before closing")
    summary = Summary(
        result=_sentence(campaign),
        stopped="the budget is spent" if open_ones or budget.spent else "nothing left to try",
        command=campaign.command(shipped(campaign)),
        families={view.family: f"{view.fate}: {view.reason}" for view in campaign.view().families if view.fate},
    )
    openings = seal_book(campaign.thread, campaign.project.folder).openings()
    mine = {view.id for view in campaign.hypotheses()}
    return campaigns.close_campaign(campaign.project, campaign.thread, openings=[o for o in openings if o.hypothesis in mine], summary=summary)


def stack_verdict(campaign: Campaign) -> Verdict | None:
    """The verdict on the final stack as it is now; None when nothing is in it, or it isn't measured."""
    stack = campaign.stack()
    plans = campaigns.plans(campaign.project, campaign.thread)
    ids = [plan.id() for plan in plans if plan.candidate == stack.configuration and plan.baseline == campaign.original]
    verdicts = [verdict for name in reversed(ids) if (verdict := verdict_of(campaign.project, name)) is not None]
    return verdicts[0] if stack.accepted and verdicts else None


def shipped(campaign: Campaign) -> Configuration:
    """What the user should run: the stack where it was supported as a whole, the original otherwise."""
    verdict = stack_verdict(campaign)
    return campaign.stack().configuration if verdict is not None and verdict.verdict == "supported" else campaign.original


def _sentence(campaign: Campaign) -> str:
    now, verdict = campaign.measured(), stack_verdict(campaign)
    if now is None:
        return "The baseline was not measured: nothing can be said."
    before = f"{now.capacity:.3g} requests/s/GPU"
    if verdict is not None and verdict.verdict == "supported" and verdict.effect is not None and verdict.interval is not None:
        low, high = verdict.interval
        bound = "at least " if verdict.censored else ""
        return f"Capacity inside the SLA rose from {before} by {bound}{verdict.effect:+.1%} (interval {low:+.1%} to {high:+.1%})."
    if verdict is not None:
        return f"The accepted changes did not hold up together: the stack is {verdict.verdict} ({verdict.reason}). Keep the original configuration."
    if names := campaign.stack().accepted:
        return f"{len(names)} changes were supported one by one, but the budget ended before they were measured together: keep the original configuration until they are."
    judged = [view.verdict for view in campaign.hypotheses() if view.verdict is not None]
    untried = [view for view in campaign.hypotheses() if view.state == "pending"]
    if untried and not any(verdict.pairs for verdict in judged):
        left = campaign.budget().launches_limit - campaign.budget().launches
        return f"Nothing could be tried: {len(untried)} hypotheses wait, one takes {campaign.estimate(untried[0].id).text}, {left} launches were left. The endpoint serves {before}."
    unfit = [v for v in judged if v.verdict == "invalid"]
    if unfit and len(unfit) == len([v for v in judged if v.pairs or v.verdict == "invalid"]):
        return f"Nothing could be judged: {unfit[-1].reason}. The endpoint serves {before} as it is."
    least = campaign.view().baseline
    detectable = f" (it could detect {least.minimum_detectable_effect:.1%})" if least else ""
    return f"Nothing found that the budget could detect{detectable}: the endpoint serves {before} as it is."


def _closing(campaign: Campaign, closed: CampaignClosed) -> Closing:
    now, verdict, project = campaign.measured(), stack_verdict(campaign), campaign.project
    shams = [opening.hypothesis for opening in closed.openings if opening.nature == "sham"]
    kept = [view.id for view in campaign.hypotheses() if view.id in shams and view.verdict is not None and view.verdict.verdict == "supported"]
    final = None
    if now is not None and verdict is not None and verdict.verdict == "supported" and verdict.effect is not None:
        final = now.capacity * (1 + verdict.effect)
    return Closing(
        thread=campaign.thread,
        sentence=closed.summary.result,
        baseline_capacity=now.capacity if now else 0.0,
        final_capacity=final,
        stack_verdict=verdict,
        shams=tuple(shams),
        shams_kept=len(kept),
        command=closed.summary.command,
        ledger=str(project.folder / "ledger.db"),
        report=str(project.campaign_folder(campaign.thread) / "report.md"),
    )
