"""What a campaign's entries tell, gathered for a report."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from ..contract.errors import BadInput
from ..contract.experiment import ExperimentPlan
from ..contract.series import Series
from ..contract.verdict import NoiseFloor, Verdict
from ..ledger import campaigns
from ..ledger.history import Run, Spent, runs, spent
from ..ledger.project import Project
from ..ledger.records import CampaignClosed, CampaignOpened, FloorRecorded, HypothesisRecorded, Note, SeriesOpened, StackRecorded, VerdictRecorded


@dataclass(frozen=True)
class Facts:
    opened: CampaignOpened
    closed: CampaignClosed | None
    hypotheses: dict[str, HypothesisRecorded]
    plans: list[ExperimentPlan]
    verdicts: dict[str, VerdictRecorded]
    """By experiment."""
    floor: NoiseFloor | None
    series: Series | None
    """That of the floor."""
    runs: list[Run]
    spent: Spent
    stack: StackRecorded | None
    notes: list[Note]
    head: tuple[int, str]

    @property
    def baseline(self) -> float | None:
        """Median capacity of the floor runs, requests/s/GPU."""
        return statistics.median(self.floor.values) if self.floor else None

    @property
    def compares(self) -> bool:
        """This is a comparison of two configurations, not an investigation."""
        return any(plan.purpose == "compare" for plan in self.plans)

    def verdict(self, plan: ExperimentPlan) -> Verdict | None:
        found = self.verdicts.get(plan.id())
        return found.verdict if found else None

    def hypothesis_of(self, plan: ExperimentPlan) -> str:
        return campaigns.hypothesis_id(plan.campaign, plan.hypothesis)

    def final(self) -> tuple[ExperimentPlan, Verdict] | None:
        """The experiment that speaks for the stack: its own, or the only change's against the original; for a comparison, the comparison."""
        judged = [(plan, verdict) for plan in self.plans if (verdict := self.verdict(plan))]
        for plan, verdict in reversed(judged):
            if plan.purpose in ("stack", "compare"):
                return plan, verdict
        if self.stack is not None and len(self.stack.accepted) == 1:
            return next(((plan, verdict) for plan, verdict in judged if self.hypothesis_of(plan) == self.stack.accepted[0]), None)
        return None

    def capacities(self, plan: ExperimentPlan, arm: str) -> list[float]:
        """Of the confirmation runs of one arm that are fit, requests/s/GPU."""
        mine = [r for r in self.runs if r.reserved.experiment == plan.id() and r.reserved.kind in ("confirm", "stack") and r.reserved.arm == arm]
        measured = [run.finished.measurement for run in mine if run.finished and run.finished.measurement]
        return [m.capacity.rps_per_gpu for m in measured if not m.invalid]

    def shams(self) -> list[str]:
        """Ids of the planted candidates; empty until the campaign is closed."""
        return [opening.hypothesis for opening in self.closed.openings if opening.nature == "sham"] if self.closed else []

    def invalid_runs(self) -> dict[str, str]:
        """Runs that were not fit to judge by, and why."""
        measured = {run.id: run.finished.measurement for run in self.runs if run.finished}
        return {name: "; ".join(m.invalid) for name, m in measured.items() if m and m.invalid}


def gather(project: Project, thread: str) -> Facts:
    """Raises `BadInput` for a thread that the ledger doesn't know."""
    opened = campaigns.campaign(project, thread)
    if opened is None:
        known = [str(entry.key) for entry in project.ledger.entries("campaign_opened")]
        raise BadInput("thread", thread, f"one of {', '.join(known) or '(the ledger holds none)'}")
    floors = campaigns.recorded(project, "floor", FloorRecorded, thread)
    series = {one.series.id(): one.series for one in campaigns.recorded(project, "series_opened", SeriesOpened)}
    stacks = campaigns.recorded(project, "stack", StackRecorded, thread)
    return Facts(
        opened=opened,
        closed=campaigns.closing(project, thread),
        hypotheses={one.id(): one for one in campaigns.recorded(project, "hypothesis", HypothesisRecorded, thread)},
        plans=campaigns.plans(project, thread),
        verdicts={one.experiment: one for one in campaigns.recorded(project, "verdict", VerdictRecorded, thread)},
        floor=floors[-1].floor if floors else None,
        series=series[floors[-1].series] if floors else None,
        runs=runs(project, campaign=thread),
        spent=spent(project, thread),
        stack=stacks[-1] if stacks else None,
        notes=campaigns.recorded(project, "note", Note, thread),
        head=project.ledger.head(),
    )


def geometric_mean(values: list[float]) -> float | None:
    return math.exp(math.fsum(math.log(value) for value in values) / len(values)) if values else None
