"""All that the fit confirmation pairs of an experiment show."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ..contract.experiment import Evidence, ExperimentPlan
from ..contract.run import Capacity, RunMeasurement
from ..contract.verdict import CheckResult, ParityResult, Verdict, VerdictName
from .checks import evaluate, observed, points_to
from .guardrails import guard
from .pairs import Pair
from .parity import parity
from .sequential import Decision, SequentialComparison
from .tails import f_tail
from .validity import unfit

SPREAD_LEVEL = 0.05
"""A candidate's wider spread is mentioned when an F test finds it at this level."""


@dataclass(frozen=True)
class Findings:
    plan: ExperimentPlan
    pairs: int
    decision: Decision
    test: tuple[VerdictName | None, str, bool]
    """What the sequential test says after what censored capacities allow: name (None: undecided), reason, whether it is final."""
    censored: bool
    falsifiers: tuple[CheckResult, ...]
    activation: tuple[CheckResult, ...]
    guardrails: tuple[CheckResult, ...]
    parity: ParityResult
    spread_ratio: float | None
    predicted: bool | None

    def refutation(self, plan: ExperimentPlan) -> str | None:
        """Why the hypothesis is refuted whatever its gain; None when it isn't."""
        if plan.lossless and self.parity.kept is False:
            return f"parity is broken: {self.parity.reason}"
        if self.pairs < plan.min_pairs:
            return None
        for result in self.falsifiers:
            if result.holds:
                return f"a falsifier fired, {result.check}: {result.reason}"
        for result in self.guardrails:
            if result.holds is False:
                return f"a guardrail broke, {result.check}: {result.reason}"
        return None

    def lacks_for_support(self, plan: ExperimentPlan) -> tuple[VerdictName, str, bool] | None:
        """What a significant gain lacks to be supported: the verdict instead, why, and whether more pairs could bring it."""
        untold = next((r for r in self.activation if r.holds is not True), None)
        if untold is not None:
            return "not_activated", f"{untold.check} was not shown: {untold.reason}", untold.value is not None
        if plan.lossless and self.parity.kept is not True:
            return "invalid", f"parity could not be measured: {self.parity.reason}", False
        if all(r.value is None for r in self.falsifiers):
            return "invalid", f"no falsifier could be evaluated: {self.falsifiers[0].check}: {self.falsifiers[0].reason}", False
        return None

    def suspicion(self) -> str | None:
        """A falsifier or guardrail whose bare figure speaks against the hypothesis while its interval can't tell; None when there is none."""
        for result in self.falsifiers:
            if result.holds is None and points_to(result) is True:
                return f"{result.check} may be so: {result.reason}"
        for result in self.guardrails:
            if result.holds is None and points_to(result) is False:
                return f"{result.check} may not hold: {result.reason}"
        return None

    def verdict(self, name: VerdictName, reason: str) -> Verdict:
        return Verdict(
            verdict=name,
            reason=reason,
            effect=self.decision.effect,
            interval=self.decision.interval,
            alpha=self.plan.alpha,
            minimum_effect=self.plan.minimum_effect,
            pairs=self.pairs,
            censored=self.censored,
            falsifiers=self.falsifiers,
            activation=self.activation,
            guardrails=self.guardrails,
            parity=self.parity,
            spread_ratio=self.spread_ratio,
            predicted=self.predicted,
        )


def find(evidence: Evidence, fit: Sequence[Pair]) -> Findings:
    """Evaluate everything on these fit pairs (at least one)."""
    plan = evidence.plan
    pairs = [pair.measured() for pair in fit]
    floor = [r.measurement for r in evidence.baseline_probes if r.measurement is not None and not unfit(r) and r.configuration == plan.baseline.digest()]
    comparison = SequentialComparison(plan.alpha, "higher", plan.minimum_effect, plan.max_pairs, plan.floor, plan.min_pairs)
    decision = [comparison.observe(b.capacity.rps_per_gpu, c.capacity.rps_per_gpu) for b, c in pairs][-1]
    bounds = {_bound(b.capacity, c.capacity) for b, c in pairs}
    ratio, remark = _spread(plan, [b for b, _ in pairs], [c for _, c in pairs])
    return Findings(
        plan=plan,
        pairs=len(pairs),
        decision=decision,
        test=_uncensored(decision, bounds - {"exact"}, remark, len(pairs) >= plan.max_pairs),
        censored=bounds != {"exact"},
        falsifiers=tuple(evaluate(check, pairs, floor) for check in plan.hypothesis.falsifiers),
        activation=tuple(evaluate(check, pairs, floor) for check in plan.hypothesis.activation),
        guardrails=guard(pairs, floor, plan.series.sla, plan.lossless),
        parity=parity([p.baseline for p in fit if p.baseline], [p.candidate for p in fit if p.candidate], evidence.baseline_probes),
        spread_ratio=ratio,
        predicted=_predicted(plan, pairs),
    )


def _bound(baseline: Capacity, candidate: Capacity) -> str:
    """What the pair's ratio is a bound of, when a capacity is only a bound: at least, at most, or nothing at all."""
    at_least = candidate.censored == "above" or baseline.censored == "below"
    at_most = candidate.censored == "below" or baseline.censored == "above"
    return "nothing" if at_least and at_most else "at least" if at_least else "at most" if at_most else "exact"


def _uncensored(decision: Decision, bounds: set[str], remark: str, ran_out: bool) -> tuple[VerdictName | None, str, bool]:
    """A lower bound may support and can't refute; an upper bound may refute and can't support; anything else says nothing."""
    name, reason = decision.verdict, decision.reason + remark
    if not bounds:
        return name, reason, True
    if name == "supported" and bounds == {"at least"}:
        return name, f"{reason}; the effect is at least that: a capacity lies beyond the ladder", True
    if name in ("refuted", "inconclusive") and bounds == {"at most"}:
        return name, f"{reason}; the effect is at most that: a capacity lies beyond the ladder", True
    if name is None and not ran_out and "nothing" not in bounds and len(bounds) == 1:
        return None, reason, False
    return "invalid", f"the ladder of rates does not hold the capacities ({', '.join(sorted(bounds))} is all that a pair says): {reason}", False


def _spread(plan: ExperimentPlan, baseline: Sequence[RunMeasurement], candidate: Sequence[RunMeasurement]) -> tuple[float | None, str]:
    """Candidate's standard deviation of log capacity over the baseline's (floor and this experiment's runs), and a remark when it is wider."""
    if len(candidate) < 2:
        return None, ""
    df = len(candidate) - 1
    here = statistics.variance([math.log(m.capacity.rps_per_gpu) for m in candidate])
    own = statistics.variance([math.log(m.capacity.rps_per_gpu) for m in baseline])
    there = (plan.floor.sd**2 * plan.floor.df + own * df) / (plan.floor.df + df)
    if there == 0:
        return None, ""
    ratio = math.sqrt(here / there)
    wider = f_tail(ratio**2, df, plan.floor.df + df) < SPREAD_LEVEL
    return ratio, f"; the candidate's spread is {ratio:.1f} times the baseline's" if wider else ""


def _predicted(plan: ExperimentPlan, pairs: Sequence[tuple[RunMeasurement, RunMeasurement]]) -> bool | None:
    """Does the prediction's interval contain the change (geometric mean over the pairs) of the figure that it names?"""
    prediction = plan.hypothesis.prediction
    logs = []
    for before, after in pairs:
        old, new = observed(before, prediction.observable), observed(after, prediction.observable)
        if not isinstance(old, (int, float)) or not isinstance(new, (int, float)) or old <= 0 or new <= 0:
            return None
        logs.append(math.log(new / old))
    return prediction.low <= math.expm1(statistics.fmean(logs)) <= prediction.high
