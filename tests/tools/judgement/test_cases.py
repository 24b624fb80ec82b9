"""Published measurements, and what a sound judge must say of them; a few of our own where the shared file is absent."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from servewright.tools.judgement import NoiseFloor, SequentialComparison, minimum_detectable_effect, noise_floor, steadiness

FILE = Path(__file__).resolve().parents[4] / "shared" / "cases" / "measured_series.json"


@pytest.fixture(scope="module")
def cases() -> dict:
    if not FILE.is_file():
        pytest.skip("measured_series.json isn't here")
    return json.loads(FILE.read_text())


def sample(mean: float, sd: float, n: int) -> list[float]:
    """Values with exactly this mean and standard deviation, in an order that doesn't rise."""
    values = np.linspace(-1, 1, n)[np.argsort(np.sin(np.arange(n) * 2.4))]
    return list(mean + values / values.std(ddof=1) * sd)


def test_warm_up(cases):
    dropping, rising, after, converged = cases["warm_up"]
    seen = steadiness(dropping["values"])
    assert seen.dropped == 1 and not seen.converged and "differ" in seen.reason
    assert not steadiness(rising["values"]).converged and "warming up" in steadiness(rising["values"]).reason
    assert not steadiness(after["values"]).converged
    assert steadiness(converged["values"]).converged and steadiness(converged["values"]).dropped == 1
    assert all(noise_floor(case["values"]).drift for case in (dropping, rising, after, converged)), "a floor names what it saw, too"


def test_noise_floor(cases):
    six, five = cases["noise_floor"]
    floor = noise_floor(six["values"])
    assert floor.df == 5 and floor.sd == pytest.approx(six["sd_ddof1"] / six["mean"], rel=0.02)
    assert minimum_detectable_effect(floor, 6, 0.05) > 0.025, "a gain of 2.5 % is inside the floor"
    assert noise_floor(five["values"]).sd * five["mean"] == pytest.approx(five["sd_ddof1"], rel=0.02)
    assert not floor.drift


def test_a_a(cases):
    case = cases["a_a"][0]
    for deltas in (case["prefill"], case["generation"]):
        for direction in ("higher", "lower"):
            comparison = SequentialComparison(0.05, direction, 0.05, 3)
            assert all(comparison.observe(100, 100 + delta).verdict != "supported" for delta in deltas)


def test_claims(cases):
    high, json_constrained, tie = cases["claims"]

    def judged(case: dict):
        baseline, candidate = (sample(case[arm]["mean"], case[arm]["sd"], case[arm]["n"]) for arm in ("baseline", "candidate"))
        comparison = SequentialComparison(0.025, "higher", 0.05, 5, noise_floor(baseline), min_pairs=5)
        return [comparison.observe(b, c) for b, c in zip(baseline, reversed(candidate), strict=True)][-1]

    assert judged(high).verdict == "inconclusive"
    supported = judged(json_constrained)
    assert supported.verdict == "supported" and supported.effect == pytest.approx(0.45, abs=0.01)
    comparison = SequentialComparison(0.025, "higher", 0.05, 2, NoiseFloor(0.015, 8))
    assert [comparison.observe(tie["baseline"], tie["candidate"]) for _ in range(2)][-1].verdict != "supported"


def test_gains_that_do_not_add_up(cases):
    case = cases["interactions"]
    code, both = sample(*case["code"], 5), sample(*case["code+params"], 5)
    comparison = SequentialComparison(0.05, "higher", 0.05, 5, noise_floor(sample(*case["stock"], 5)), min_pairs=5)
    decision = [comparison.observe(b, c) for b, c in zip(code, both, strict=True)][-1]
    assert decision.verdict != "supported" and decision.effect is not None and decision.effect < 0, "params on top of code is no gain"


def test_steadiness_of_our_own():
    assert steadiness([100, 100.5, 99.8]).converged and steadiness([100, 100.5, 99.8]).dropped == 0
    assert steadiness([60, 100, 100.2]).dropped == 1


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ([8.0, 10.0, 10.05, 9.95, 10.02], "cold first run"),
        ([10, 10.01, 9.99, 10.0, 11.0, 11.02, 10.99, 11.01], "level changed"),
        ([10.0, 10.2, 10.35, 10.5], "faster than the one before"),
        ([10.0, 10.02, 9.98, 7.0, 10.01, 9.99], "lies -3"),
    ],
)
def test_what_a_floor_sees(values, word):
    assert word in noise_floor(values).drift


def test_a_cold_first_run_is_left_out_of_the_spread():
    assert noise_floor([8.0, 10.0, 10.05, 9.95, 10.02]).sd < 0.01


def test_pooling_counts_only_differences_within_groups():
    floor = noise_floor([10.0, 10.1, 9.9], [[20.0, 20.2], [5.0]])
    assert floor.df == 3 and floor.sd == pytest.approx(math.sqrt((0.0200 / 100 + 0.5 * 0.01**2) / 3), rel=0.02)
    assert floor.low < floor.sd < floor.high
