"""How often campaigns keep what isn't there, and find what is: whole campaigns simulated through the judge's own functions."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from ...tools.judgement.budget import ErrorBudget
from ...tools.judgement.floor import noise_floor
from ...tools.judgement.mde import minimum_detectable_effect
from ...tools.judgement.screen import screen
from ...tools.judgement.sequential import Decision, SequentialComparison

NAME = "error-rates"
SUMMARY = "False keeps, phantom gain, power and runs of whole simulated campaigns, by world"
World = Literal["independent", "drifting", "heavy tails t3", "heavy tails t2.5", "outliers", "cold first"]
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
    must: str
    holds: Callable[[Figures], bool]


@dataclass
class Figures:
    """What came of the campaigns of one setting."""

    campaigns: int = 0
    false: int = 0
    phantom: float = 0.0
    shipped: float = 0.0
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

    def run(self, effect: float = 0.0, first: bool = False) -> float:
        """`first`: the machine was idle before."""
        return 10 * (1 + effect) * math.exp(self._noise(first))

    def pair(self, effect: float, baseline_first: bool) -> tuple[float, float]:
        if baseline_first:
            baseline = self.run(first=True)
            return baseline, self.run(effect)
        candidate = self.run(effect, first=True)
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
    groups: list[list[float]] = []
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
        baseline, candidate = bench.pair(effect, bool(random.random() < 0.5))
        runs += 2
        if not screen([baseline], [candidate], floor, setting.minimum_effect).go:
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


def settings() -> list[Setting]:
    worlds: tuple[World, ...] = ("independent", "drifting", "heavy tails t3", "heavy tails t2.5", "outliers", "cold first")
    rows = []
    for cv, worth, pairs in ((0.01, 0.05, 6), (0.03, 0.10, 10), (0.07, 0.25, 10)):
        for world in worlds:
            bounded = cv == 0.03 and world in worlds[:3]
            must = "false <= 5 %" + (", phantom < 0.1 %" if bounded else "")
            rows.append(Setting(world, cv, 20, (), worth, pairs, must, lambda f, b=bounded: f.false_share <= 0.05 and (not b or f.phantom / f.campaigns < 0.001)))
    rows.append(Setting("independent", 0.01, 18, (0.05, 0.05), 0.05, 6, "power >= .95, runs <= 66", lambda f: f.power >= 0.95 and f.mean_runs <= 66))
    rows.append(Setting("drifting", 0.01, 18, (0.05, 0.05), 0.05, 6, "power >= .95, runs <= 70", lambda f: f.power >= 0.95 and f.mean_runs <= 70))
    rows.append(Setting("independent", 0.03, 18, (0.10, 0.10), 0.10, 10, "power >= .93, runs <= 100", lambda f: f.power >= 0.93 and f.mean_runs <= 100))
    return rows


def run(options: list[str]) -> dict[str, Any]:
    """Options: `--campaigns N` a setting (default 400), `--seed N`."""
    parser = argparse.ArgumentParser(prog=f"servewright bench {NAME}")
    parser.add_argument("--campaigns", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(options)
    rows = []
    for number, setting in enumerate(settings()):
        figures, random = Figures(), np.random.default_rng([asked.seed, number])
        for _ in range(asked.campaigns):
            campaign(setting, random, figures)
        rows.append(_row(setting, figures))
    least = minimum_detectable_effect(noise_floor([10 * math.exp(x) for x in _spread(0.03, FLOOR_RUNS)]), 8, ALPHA / 20)
    return {
        "settings": rows,
        "CV 3 %, real +5 %, 16 runs affordable, alpha .05/20": f"{'untestable before the first run' if least > 0.05 else 'MISSED'}: 8 pairs detect {least:.1%}",
        "campaigns a setting": asked.campaigns,
        "all hold": all(row["holds"] for row in rows) and least > 0.05,
    }


def _row(setting: Setting, figures: Figures) -> dict[str, Any]:
    n = figures.campaigns
    return {
        "world": setting.world,
        "CV %": round(100 * setting.cv),
        "real": " ".join(f"+{effect:.0%}" for effect in setting.real) or "none",
        "false keeps": round(figures.false_share, 4),
        "phantom %": round(100 * figures.phantom / n, 3),
        "phantom shipped %": round(100 * figures.shipped / n, 3),
        "power": round(figures.power, 3) if figures.wanted else None,
        "runs": round(figures.mean_runs, 1),
        "stack runs": round(figures.stack_runs / n, 1),
        "confirmed": round(figures.confirmed / n, 1),
        "untestable": round(figures.untestable / n, 1),
        "must": setting.must,
        "holds": setting.holds(figures),
    }


def _spread(sd: float, count: int) -> list[float]:
    """Values with exactly this standard deviation (ddof 1)."""
    values = np.linspace(-1, 1, count)
    return list(values / values.std(ddof=1) * sd)
