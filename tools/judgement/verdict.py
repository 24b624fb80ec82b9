"""Evidence in; verdict, or what to do next, out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..contract.experiment import Evidence, ExperimentPlan
from ..contract.verdict import Verdict, VerdictName
from .findings import Findings, find
from .mde import minimum_detectable_effect
from .pairs import CONFIRMATION, Pair, check_identity, collect
from .screen import screen, screen_virtual
from .validity import killed_by_itself, too_many_unfit, unfit

MOST_UNFIT_SCREENS = 2
"""Screening pairs that may be unfit before the experiment is called invalid."""

SECOND_LOOKS = 2
"""Pairs beyond the fewest that a gain is given to be refuted in, while a falsifier or a guardrail looks broken but can't be told."""


@dataclass(frozen=True)
class Next:
    """What the driver must do now."""

    action: Literal["screen", "pair", "stop"]
    pair: int
    """Number of the pair to run or to complete, within its kind; -1 when stopping."""
    reason: str


@dataclass(frozen=True)
class _Outcome:
    name: VerdictName
    reason: str
    next: Next | None = None
    """None: decided."""


def judge(evidence: Evidence) -> Verdict:
    """The verdict on all confirmation runs of the experiment, as the evidence stands. Raises `Refused` for runs that don't belong.

    Order of precedence: untestable; infeasible; not activated; invalid; refuted by a falsifier, parity or a guardrail; then what the sequential
    test says, where `supported` also needs activation shown, parity shown for a lossless change, and a falsifier that could be evaluated.
    """
    outcome, findings = _weigh(evidence)
    plan = evidence.plan
    if findings is None:
        return Verdict(verdict=outcome.name, reason=outcome.reason, alpha=plan.alpha, minimum_effect=plan.minimum_effect)
    return findings.verdict(outcome.name, outcome.reason)


def advance(evidence: Evidence) -> Next:
    """What to do next: run a screening pair, run a confirmation pair, or stop and record the verdict. Raises `Refused` as `judge` does."""
    outcome, _ = _weigh(evidence)
    return outcome.next or Next("stop", -1, f"{outcome.name}: {outcome.reason}")


def testable(plan: ExperimentPlan) -> tuple[bool, str]:
    """Can the affordable pairs detect the minimum effect? The final stack is measured whatever the answer."""
    least = minimum_detectable_effect(plan.floor, plan.max_pairs, plan.alpha, min_pairs=plan.min_pairs)
    shown = f"{plan.max_pairs} pairs detect {least:.1%} at power 0.8 and alpha {plan.alpha:.2g} (noise {plan.floor.sd:.2%}); the minimum effect is {plan.minimum_effect:.1%}"
    return plan.purpose == "stack" or least <= plan.minimum_effect, shown


def _weigh(evidence: Evidence) -> tuple[_Outcome, Findings | None]:
    check_identity(evidence)
    plan = evidence.plan
    can, shown = testable(plan)
    if not can:
        return _Outcome("untestable", shown), None
    pairs = collect(evidence, CONFIRMATION)
    fit = [pair for pair in pairs if pair.fit]
    findings = find(evidence, fit) if fit else None
    for run in evidence.runs:
        if run.arm == "candidate" and killed_by_itself(run):
            return _Outcome("infeasible", f"the candidate failed: {unfit(run)}"), findings
    if not pairs and (screened := _screening(evidence)) is not None:
        return screened, None
    aside = [pair.unfit for pair in pairs if pair.unfit]
    return _decide(evidence, pairs, aside, findings), findings


def _screening(evidence: Evidence) -> _Outcome | None:
    """What the screen says; None when confirmation may begin."""
    plan = evidence.plan
    if plan.screen == "none":
        return None
    pairs = collect(evidence, {"screen"})
    fit = [pair.measured() for pair in pairs if pair.fit]
    if not fit:
        aside = [pair.unfit for pair in pairs if pair.unfit]
        if len(aside) >= MOST_UNFIT_SCREENS:
            return _Outcome("invalid", f"screening could not be measured: {aside[-1]}")
        return _due(evidence, "screen", _next_number(pairs), "a screening pair is due")
    if plan.screen == "virtual":
        before, after = fit[-1]
        seen = screen_virtual(before.capacity.rps_per_gpu, after.capacity.rps_per_gpu, plan.minimum_effect)
    else:
        before, after = zip(*fit, strict=True)
        seen = screen([m.capacity.rps_per_gpu for m in before], [m.capacity.rps_per_gpu for m in after], plan.floor, plan.minimum_effect)
    hidden = any(after.capacity.censored == "above" for _, after in fit)
    if seen.go or hidden:
        return None
    ended = _Outcome("inconclusive", seen.reason)
    return ended if seen.go is False else _due(evidence, "screen", _next_number(pairs), seen.reason, ended)


def _decide(evidence: Evidence, pairs: list[Pair], aside: list[str], findings: Findings | None) -> _Outcome:
    plan = evidence.plan
    if findings and (off := next((r for r in findings.activation if r.holds is False), None)):
        return _Outcome("not_activated", f"{off.check} is not so: {off.reason}")
    if too_many_unfit(len(aside), plan.max_pairs):
        return _Outcome("invalid", f"{len(aside)} of {len(pairs)} pairs are not fit to judge by: {aside[-1]}")
    if findings is None:
        ended = _Outcome("invalid", f"no pair is fit to judge by: {aside[-1]}") if aside else _Outcome("inconclusive", "no confirmation pair was run")
        return _due(evidence, "pair", _next_number(pairs), "the first confirmation pair is due", ended)
    if (broken := findings.refutation(plan)) is not None:
        return _Outcome("refuted", broken)
    name, reason, final = findings.test
    if name is None or name == "supported":
        more = findings.pairs < plan.max_pairs
        if name is None:
            return _due(evidence, "pair", _next_number(pairs), reason, _Outcome("inconclusive", f"{reason}; no further pair came"))
        if (lack := findings.lacks_for_support(plan)) is not None:
            verdict, why, may_come = lack
            ended = _Outcome(verdict, f"{reason}, but {why}")
            return _due(evidence, "pair", _next_number(pairs), why, ended) if may_come and more else ended
        if (suspicion := findings.suspicion()) is not None and findings.pairs < min(plan.max_pairs, plan.min_pairs + SECOND_LOOKS):
            return _due(evidence, "pair", _next_number(pairs), suspicion, _Outcome("supported", f"{reason}; {suspicion}"))
        return _Outcome("supported", reason)
    untold = next((r for r in findings.activation if r.holds is None), None)
    if untold is not None and final:
        return _Outcome("not_activated", f"{untold.check} was not shown: {untold.reason}")
    return _Outcome(name, reason)


def _next_number(pairs: list[Pair]) -> int:
    """The first pair that lacks an arm and isn't set aside already, or a new one."""
    return next((pair.number for pair in pairs if not pair.complete and not pair.unfit), max((pair.number for pair in pairs), default=-1) + 1)


def _due(evidence: Evidence, action: Literal["screen", "pair"], pair: int, why: str, ended: _Outcome | None = None) -> _Outcome:
    """More runs are due, unless none can come."""
    ended = ended or _Outcome("inconclusive", "closed before it was screened")
    return ended if evidence.closed else _Outcome(ended.name, ended.reason, Next(action, pair, why))
