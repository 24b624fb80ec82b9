"""The pairs of an experiment, and who may be in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..contract.errors import Refused
from ..contract.experiment import Evidence
from ..contract.run import RunKind, RunMeasurement, RunRecord
from .validity import unfit

CONFIRMATION: frozenset[RunKind] = frozenset({"confirm", "stack"})


@dataclass(frozen=True)
class Pair:
    """Both arms of one pair; an arm is None until its run has ended."""

    number: int
    baseline: RunRecord | None = None
    candidate: RunRecord | None = None

    @property
    def complete(self) -> bool:
        return self.baseline is not None and self.candidate is not None

    @property
    def unfit(self) -> str:
        """Why the pair is set aside; empty when it is fit, or not complete yet."""
        reasons = [f"{arm} run of pair {self.number}: {why}" for arm, run in (("baseline", self.baseline), ("candidate", self.candidate)) if run and (why := unfit(run))]
        return "; ".join(reasons)

    @property
    def fit(self) -> bool:
        return self.complete and not self.unfit

    def measured(self) -> tuple[RunMeasurement, RunMeasurement]:
        """Figures of baseline and candidate of a fit pair."""
        if self.baseline is None or self.candidate is None or self.baseline.measurement is None or self.candidate.measurement is None:
            raise Refused(f"pair {self.number} is not complete")
        return self.baseline.measurement, self.candidate.measurement


def collect(evidence: Evidence, kinds: Iterable[RunKind]) -> list[Pair]:
    """Pairs of these kinds by number. Of several ended attempts of one arm the first that was measured counts: a repeat can't better it."""
    wanted = set(kinds)
    arms: dict[tuple[int, str], RunRecord] = {}
    for run in sorted((r for r in evidence.runs if r.kind in wanted), key=lambda r: r.attempt):
        held = arms.get((run.pair, run.arm))
        if held is None or (held.measurement is None and run.measurement is not None):
            arms[run.pair, run.arm] = run
    return [Pair(number, arms.get((number, "baseline")), arms.get((number, "candidate"))) for number in sorted({number for number, _ in arms})]


def check_identity(evidence: Evidence) -> None:
    """Raises `Refused` unless every run belongs: this experiment, its arms' configurations, its series, no run twice.

    Screening runs belong to a series of their own (another window of the trace, or virtual time); they are no evidence.
    """
    plan, experiment, series = evidence.plan, evidence.plan.id(), evidence.plan.series.id()
    expected = {"baseline": plan.baseline.digest(), "candidate": plan.candidate.digest()}
    seen: set[str] = set()
    for run in evidence.runs:
        if run.run in seen:
            raise Refused(f"run {run.run} is in the evidence twice")
        seen.add(run.run)
        if run.experiment != experiment:
            raise Refused(f"run {run.run} was made under experiment {run.experiment}, not under {experiment}")
        if run.configuration != expected[run.arm]:
            raise Refused(f"run {run.run} ran another configuration than the {run.arm} that was registered")
        if run.kind in CONFIRMATION and run.series != series:
            raise Refused(f"run {run.run} belongs to series {run.series}, not to {series}: runs of different series can't be compared")
        if run.kind not in CONFIRMATION and run.kind != "screen":
            raise Refused(f"run {run.run} is a {run.kind} run and can't be evidence of an experiment")
    for run in evidence.baseline_probes:
        if run.series != series:
            raise Refused(f"floor run {run.run} belongs to series {run.series}, not to {series}: runs of different series can't be compared")
