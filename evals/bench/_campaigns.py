"""Whole campaigns simulated through the judge's own functions, in stated worlds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from ...tools.judgement.budget import ErrorBudget
from ...tools.judgement.floor import noise_floor
from ...tools.judgement.mde import minimum_detectable_effect
from ...tools.judgement.screen import screen
from ...tools.judgement.sequential import Decision, Noise, SequentialComparison

World = Literal["independent", "drifting", "heavy tails t3", "heavy tails t2.5", "outliers", "cold first", "candidates noisier x2", "candidates noisier x3"]
"""How the log capacities of identical runs scatter, always with standard deviation `cv` but for what is added:
independent: normal; drifting: AR(1) from run to run with `RHO`; heavy tails: t with 3 or 2.5 degrees of freedom;
outliers: a share of runs is slower by 10 to 50 % (log) more; cold first: the first run of every pair, and of the floor, is slower by `COLD` (log);
candidates noisier: normal, the candidates' runs with twice or three times the baseline's standard deviation."""
WORLDS: tuple[World, ...] = ("independent", "drifting", "heavy tails t3", "heavy tails t2.5", "outliers", "cold first", "candidates noisier x2", "candidates noisier x3")
RHO, OUTLIERS, COLD = 0.9, 0.03, 0.10
FLOOR_RUNS, ALPHA = 6, 0.05


@dataclass(frozen=True)
class Setting:
    world: World
    cv: float
    """Standard deviation of log capacity over identical runs."""
    nulls: int
    real: tuple[float, ...]
    """True effects of the candidates that have one, as fractions."""
    minimum_effect: float
    max_pairs: int


@dataclass
class Figures:
    """What came of the campaigns of one setting."""

    campaigns: int = 0
    false: int = 0
    """Campaigns that kept a candidate without effect."""
    phantom: float = 0.0
    """Sum of the effects reported for such candidates."""
    shipped: float = 0.0
    """Sum of the effects reported for final stacks without effect."""
    found: int = 0
    wanted: int = 0
    runs: int = 0
    stack_runs: int = 0
    confirmed: int = 0
    untestable: int = 0

    @property
    def false_share(self) -> float:
        return self.false / self.campaigns

    @property
    def power(self) -> float:
        return self.found / self.wanted if self.wanted else math.nan

    @property
    def mean_runs(self) -> float:
        return self.runs / self.campaigns


@dataclass
class Bench:
    """Runs in the order of time; each gives a capacity around 10 requests/s."""

    world: World
    cv: float
    random: np.random.Generator
    level: float = field(init=False)

    def __post_init__(self) -> None:
        self.level = self.cv * self.random.standard_normal()

    def run(self, effect: float = 0.0, first: bool = False, wider: float = 1.0) -> float:
        """`first`: the machine was idle before. `wider`: times the noise."""
        return 10 * (1 + effect) * math.exp(self._noise(first) * wider)

    def pair(self, effect: float, baseline_first: bool) -> tuple[float, float]:
        wider = {"candidates noisier x2": 2.0, "candidates noisier x3": 3.0}.get(self.world, 1.0)
        if baseline_first:
            baseline = self.run(first=True)
            return baseline, self.run(effect, wider=wider)
        candidate = self.run(effect, first=True, wider=wider)
        return self.run(), candidate

    def _noise(self, first: bool) -> float:
        draw = self.random
        match self.world:
            case "drifting":
                self.level = RHO * self.level + math.sqrt(1 - RHO**2) * self.cv * draw.standard_normal()
                return self.level
            case "heavy tails t3":
                return self.cv * draw.standard_t(3) / math.sqrt(3)
            case "heavy tails t2.5":
                return self.cv * draw.standard_t(2.5) / math.sqrt(5)
            case "outliers":
                return self.cv * draw.standard_normal() - (draw.uniform(0.1, 0.5) if draw.random() < OUTLIERS else 0.0)
            case "cold first":
                return self.cv * draw.standard_normal() - (COLD if first else 0.0)
        return self.cv * draw.standard_normal()


def campaign(setting: Setting, random: np.random.Generator, into: Figures) -> None:
    """One campaign as the driver makes it: floor; each candidate screened, then confirmed; what was kept measured as a stack."""
    bench, budget = Bench(setting.world, setting.cv, random), ErrorBudget(ALPHA)
    floor_runs = [bench.run(first=i == 0) for i in range(FLOOR_RUNS)]
    groups: list[list[float]] = [[]]
    effects = [0.0] * setting.nulls + list(setting.real)
    random.shuffle(effects)
    kept: list[float] = []
    runs, phantom, false = FLOOR_RUNS, 0.0, False
    for effect in effects:
        alpha = budget.next_alpha()
        floor = noise_floor(floor_runs, groups)
        if minimum_detectable_effect(floor, setting.max_pairs, alpha) > setting.minimum_effect:
            into.untestable += 1
            budget.record(Decision("untestable", None, None, 0, "", alpha))
            continue
        go, baselines = screened(bench, effect, floor, setting.minimum_effect, random)
        groups[0] += baselines
        runs += 2 * len(baselines)
        if not go:
            budget.record(Decision("inconclusive", None, None, 0, "", alpha))
            continue
        comparison = SequentialComparison(alpha, "higher", setting.minimum_effect, setting.max_pairs, floor)
        decision, baselines = confirm(bench, comparison, effect, random)
        runs += 2 * decision.pairs
        groups.append(baselines)
        budget.record(decision)
        into.confirmed += 1
        if decision.verdict == "supported":
            kept.append(effect)
            if effect <= 0:
                false, phantom = True, phantom + (decision.effect or 0.0)
    if kept:
        total = math.prod(1 + effect for effect in kept) - 1
        stack, _ = confirm(bench, SequentialComparison(budget.stack_alpha, "higher", setting.minimum_effect, setting.max_pairs, noise_floor(floor_runs, groups)), total, random)
        into.stack_runs += 2 * stack.pairs
        if stack.verdict == "supported" and total <= 0:
            into.shipped += stack.effect or 0.0
    into.campaigns += 1
    into.runs += runs
    into.false += false
    into.phantom += phantom
    into.found += sum(effect > 0 for effect in kept)
    into.wanted += len(setting.real)


def screened(bench: Bench, effect: float, floor: Noise, minimum_effect: float, random: np.random.Generator) -> tuple[bool, list[float]]:
    """Is confirmation worth its price, and how many pairs did it take to see?"""
    baseline: list[float] = []
    candidate: list[float] = []
    go = None
    while go is None:
        before, after = bench.pair(effect, bool(random.random() < 0.5))
        baseline.append(before)
        candidate.append(after)
        go = screen(baseline, candidate, floor, minimum_effect).go
    return go, baseline


def confirm(bench: Bench, comparison: SequentialComparison, effect: float, random: np.random.Generator) -> tuple[Decision, list[float]]:
    """Pairs until decided; the order of arms is random in the first of every two pairs and turned round in the second."""
    baselines: list[float] = []
    baseline_first = True
    while True:
        baseline_first = bool(random.random() < 0.5) if len(baselines) % 2 == 0 else not baseline_first
        baseline, candidate = bench.pair(effect, baseline_first)
        baselines.append(baseline)
        decision = comparison.observe(baseline, candidate)
        if decision.verdict is not None:
            return decision, baselines
