"""The sequential test: its boundaries, what it says of simple series, and properties that hold of any."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servewright.tools.contract.errors import BadInput, Refused
from servewright.tools.judgement import Decision, ErrorBudget, NoiseFloor, SequentialComparison, minimum_detectable_effect, pairs_needed, screen
from servewright.tools.judgement.boundaries import crossing_probability, nominal_levels
from servewright.tools.judgement.tails import normal_upper

FLOOR = NoiseFloor(0.01, 5)
capacities = st.floats(min_value=1.0, max_value=100.0)


@pytest.mark.parametrize(("alpha", "looks"), [(0.05, (2, 6)), (0.0025, (2, 12)), (0.025, (5, 5))])
def test_boundaries_spend_exactly_alpha(alpha, looks):
    levels = nominal_levels(alpha, *looks)
    assert crossing_probability(0.0, tuple(normal_upper(level) for level in levels), looks[0]) == pytest.approx(alpha, rel=1e-3)
    assert len(levels) == looks[1] - looks[0] + 1


def test_boundaries_against_a_simulation():
    levels = nominal_levels(0.05, 2, 6)
    sums = np.random.default_rng(1).standard_normal((40_000, 6)).cumsum(axis=1)[:, 1:] / np.sqrt(np.arange(2, 7))
    assert (sums > [normal_upper(level) for level in levels]).any(axis=1).mean() == pytest.approx(0.05, abs=0.005)


def feed(comparison: SequentialComparison, pairs) -> Decision:
    return [comparison.observe(b, c) for b, c in pairs][-1]


def test_the_public_surface():
    comparison = SequentialComparison(0.0025, "higher", 0.05, 8, noise=NoiseFloor(0.01, 5))
    first = comparison.observe(10.0, 12.0)
    assert first.verdict is None and first.pairs == 1 and first.interval and first.effect == pytest.approx(0.2)
    second = comparison.observe(10.1, 12.1)
    assert second.verdict == "supported" and second.pairs == 2 and second.interval and second.interval[0] > 0 and second.reason


def test_lower_is_better_for_latencies():
    decision = feed(SequentialComparison(0.01, "lower", 0.05, 6, FLOOR), [(1.0, 0.8), (1.01, 0.8)])
    assert decision.verdict == "supported" and decision.effect == pytest.approx(-0.2, abs=0.01) and decision.interval and decision.interval[1] < 0
    assert feed(SequentialComparison(0.01, "lower", 0.05, 6, FLOOR), [(1.0, 1.2), (1.01, 1.2)]).verdict == "refuted"


def test_futility_stops_before_the_pairs_run_out():
    decision = feed(SequentialComparison(0.0025, "higher", 0.10, 12, NoiseFloor(0.03, 5)), [(10, 9.9), (10, 10.0)])
    assert decision.verdict == "inconclusive" and decision.pairs == 2 and "hardly" in decision.reason


def test_one_outlier_supports_nothing():
    """A slow baseline run looks like a gain of 40 % in one pair."""
    assert feed(SequentialComparison(0.01, "higher", 0.05, 6, NoiseFloor(0.01, 40)), [(7.0, 10.0), (10.0, 10.05)]).verdict != "supported"


@pytest.mark.parametrize(
    "change", [{"alpha": 0}, {"alpha": 0.7}, {"direction": "up"}, {"minimum_effect": 0}, {"max_pairs": 1}, {"minimum_effect": 1.5, "direction": "lower"}]
)
def test_bad_arguments(change):
    with pytest.raises(BadInput):
        SequentialComparison(**({"alpha": 0.05, "direction": "higher", "minimum_effect": 0.05, "max_pairs": 4, "noise": FLOOR} | change))
    with pytest.raises(BadInput):
        SequentialComparison(0.05, "higher", 0.05, 4, FLOOR).observe(10, -1)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(capacities, capacities), min_size=2, max_size=6), st.sampled_from(["higher", "lower"]))
def test_swapped_arms_are_never_both_supported(pairs, direction):
    there = feed(SequentialComparison(0.05, direction, 0.05, 6, FLOOR), pairs)
    back = feed(SequentialComparison(0.05, direction, 0.05, 6, FLOOR), [(c, b) for b, c in pairs])
    assert {there.verdict, back.verdict} != {"supported"}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(capacities, capacities), min_size=2, max_size=6), st.floats(0.01, 1000))
def test_the_unit_does_not_matter(pairs, unit):
    one = feed(SequentialComparison(0.05, "higher", 0.05, 6, FLOOR), pairs)
    other = feed(SequentialComparison(0.05, "higher", 0.05, 6, FLOOR), [(b * unit, c * unit) for b, c in pairs])
    assert one.effect == pytest.approx(other.effect, rel=1e-6, abs=1e-9)
    if one.interval and min(abs(one.interval[0]), abs(one.interval[1] - 0.05)) > 1e-6:
        assert one.verdict == other.verdict


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(capacities, capacities), min_size=2, max_size=6))
def test_supported_exactly_when_the_interval_excludes_no_gain(pairs):
    decision = feed(SequentialComparison(0.05, "higher", 0.05, 6, FLOOR), pairs)
    assert decision.interval is not None
    assert (decision.verdict == "supported") == (decision.interval[0] > 0)


def test_mde_against_a_simulation():
    """Power at the MDE is 0.8, simulated through the test itself (futility costs a little)."""
    floor = NoiseFloor(0.02, 5)
    effect = minimum_detectable_effect(floor, 6, 0.05)
    random, found = np.random.default_rng(2), 0
    for _ in range(600):
        known = NoiseFloor(0.02 * math.sqrt(random.chisquare(5) / 5), 5)
        comparison = SequentialComparison(0.05, "higher", effect, 6, known)
        decision = None
        while decision is None or decision.verdict is None:
            noise = 0.02 * random.standard_normal(2)
            decision = comparison.observe(10 * math.exp(noise[0]), 10 * (1 + effect) * math.exp(noise[1]))
        found += decision.verdict == "supported"
    assert 0.72 < found / 600 < 0.92


def test_mde_and_pairs_needed():
    floor = NoiseFloor(0.03, 5)
    assert minimum_detectable_effect(floor, 8, 0.05 / 20) > 0.05, "16 runs can't show 5 % at CV 3 %"
    effects = [minimum_detectable_effect(floor, pairs, 0.01) for pairs in (2, 4, 8, 16)]
    assert effects == sorted(effects, reverse=True)
    needed = pairs_needed(floor, 0.10, 0.01)
    assert needed and minimum_detectable_effect(floor, needed, 0.01) <= 0.10 < minimum_detectable_effect(floor, needed - 1, 0.01)
    assert pairs_needed(NoiseFloor(0.5, 5), 0.01, 0.01) is None


def test_screen():
    assert screen([10.0], [10.9], FLOOR, 0.05).go is True
    assert screen([10.0], [9.9], FLOOR, 0.05).go is False
    assert screen([10.0], [10.3], FLOOR, 0.05).go is None, "one more pair is cheaper than confirmation"
    assert screen([10.0, 10.0], [10.3, 10.35], FLOOR, 0.05).go is True


def settled(verdict: str, pairs: int, alpha: float) -> Decision:
    return Decision(verdict, None, None, pairs, "", alpha)  # pyright: ignore[reportArgumentType]


def test_error_budget_never_hands_out_more_than_it_has():
    budget, spent = ErrorBudget(0.05), 0.0
    for _ in range(500):
        alpha = budget.next_alpha()
        assert alpha > 0
        spent += alpha
        budget.record(settled("refuted", 2, alpha))
    assert spent + budget.stack_alpha <= 0.05
    side_by_side = ErrorBudget(0.05)
    assert sum(side_by_side.next_alpha() for _ in range(500)) + side_by_side.stack_alpha <= 0.05


def test_error_budget_returns_what_was_not_tested():
    budget = ErrorBudget(0.05)
    first = budget.next_alpha()
    budget.record(settled("inconclusive", 0, first))
    assert budget.next_alpha() == pytest.approx(first)
    budget.record(settled("supported", 2, first))
    again = budget.next_alpha()
    assert again == pytest.approx(first)
    budget.record(settled("refuted", 3, again))
    assert budget.next_alpha() < first


def test_error_budget_is_rebuilt_from_a_record():
    live, again, levels = ErrorBudget(0.05), ErrorBudget(0.05), []
    for verdict, pairs in (("refuted", 2), ("inconclusive", 0), ("supported", 2), ("refuted", 4)):
        levels.append((alpha := live.next_alpha(), verdict, pairs))
        live.record(settled(verdict, pairs, alpha))
    for alpha, verdict, pairs in levels:
        again.take(alpha)
        again.record(settled(verdict, pairs, alpha))
    assert again.next_alpha() == pytest.approx(live.next_alpha())
    with pytest.raises(Refused):
        again.take(0.049)
    with pytest.raises(Refused):
        again.record(settled("refuted", 2, 0.0123))
