"""Error rates of simulated campaigns, loosely, with fixed seeds; the whole table is `servewright bench error-rates`."""

from __future__ import annotations

import numpy as np
import pytest

from servewright.evals.bench import error_rates
from servewright.evals.bench._campaigns import WORLDS, Bench, Figures, Setting, campaign, confirm
from servewright.tools.judgement import ErrorBudget, SequentialComparison, noise_floor


def simulated(setting: Setting, campaigns: int) -> Figures:
    figures, random = Figures(), np.random.default_rng(11)
    for _ in range(campaigns):
        campaign(setting, random, figures)
    return figures


@pytest.mark.parametrize("world", [world for world in WORLDS if not world.endswith("x3")])
def test_nothing_is_kept_where_nothing_is(world):
    assert simulated(Setting(world, 0.03, 20, (), 0.10, 12), 40).false_share <= 0.1


def test_real_gains_are_found_within_the_budget():
    figures = simulated(Setting("independent", 0.01, 18, (0.05, 0.05), 0.05, 8), 60)
    assert figures.power > 0.9 and figures.mean_runs < 68


@pytest.mark.parametrize("world", ["independent", "drifting", "heavy tails t2.5", "outliers", "cold first"])
def test_confirming_everything_keeps_the_error_rate_too(world):
    """Without screens in front of it: twenty nulls a campaign, all confirmed."""
    random, false = np.random.default_rng(5), 0
    for _ in range(40):
        bench, budget = Bench(world, 0.01, random), ErrorBudget(0.05)
        floor = noise_floor([bench.run(first=i == 0) for i in range(6)])
        kept = []
        for _ in range(20):
            alpha = budget.next_alpha()
            decision, _ = confirm(bench, SequentialComparison(alpha, "higher", 0.05, 6, floor), 0.0, random)
            budget.record(decision)
            kept.append(decision.verdict == "supported")
        false += any(kept)
    assert false <= 4


def test_the_table_is_told():
    told = error_rates.run(["--campaigns", "1"])
    assert len(told["table"]) == len(error_rates.table()) and "untestable" in told["CV 3 %, real +5 %, 16 runs affordable, alpha .05/20"]
