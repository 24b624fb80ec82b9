"""Checks, guardrails and parity."""

from __future__ import annotations

import pytest

from servewright.tools.contract.hypothesis import Check
from servewright.tools.contract.run import Capacity, Probe, RunMeasurement
from servewright.tools.contract.sla import SLA
from servewright.tools.judgement.checks import evaluate
from servewright.tools.judgement.guardrails import GUARDRAILS, guard
from servewright.tools.judgement.parity import distance, parity

SLA_BOTH = SLA(ttft_s=1.0, tpot_s=0.05)


def run(capacity: float = 10.0, **observables) -> RunMeasurement:
    named = {name.replace("__", "@").replace("_d_", "."): value for name, value in observables.items()}
    return RunMeasurement(run="r", capacity=Capacity(rps_per_gpu=capacity), points=(), observables=named)


def pairs(name: str, baseline, candidate):
    return [(run(**{name: b}), run(**{name: c})) for b, c in zip(baseline, candidate, strict=True)]


def floor(name: str, *values: float):
    return [run(**{name: value}) for value in values]


@pytest.mark.parametrize(
    ("op", "value", "tolerance", "expected"),
    [("<", 0.5, 0, True), (">", 0.5, 0, False), (">=", 0.398, 0, None), ("==", 0.4, 0.1, True), ("==", 0.8, 0.1, False), ("!=", 0.8, 0.1, True), (">", 0.45, 0.1, True)],
)
def test_noisy_figures_by_their_interval(op, value, tolerance, expected):
    seen = evaluate(
        Check(observable="kv_usage_max", op=op, value=value, tolerance=tolerance),
        pairs("kv_usage_max", (0.2, 0.201, 0.199), (0.4, 0.401, 0.399)),
        floor("kv_usage_max", 0.2, 0.201, 0.199),
    )
    assert seen.holds is expected, seen.reason
    assert seen.interval and seen.interval[0] < 0.4 < seen.interval[1]


def test_a_wild_p99_can_not_fire_by_chance():
    check = Check(observable="ttft_p99_s@1.0", arm="ratio", op=">", value=1.1)
    wild = pairs("ttft_p99_s__1.0", (1.0, 2.0), (1.8, 1.6))
    assert evaluate(check, wild, floor("ttft_p99_s__1.0", 1.0, 2.5, 1.4, 0.8)).holds is None
    assert evaluate(check, wild[:1]).holds is None, "one pair says nothing of its own noise"
    calm = pairs("ttft_p99_s__1.0", (1.0, 1.01), (2.0, 2.02))
    assert evaluate(check, calm, floor("ttft_p99_s__1.0", 1.0, 1.01, 0.99)).holds is True


def test_configuration_is_exact():
    same = [(run(config_d_max_num_seqs=8, config_d_enable_prefix_caching=False), run(config_d_max_num_seqs=64, config_d_enable_prefix_caching=True))] * 2
    assert evaluate(Check(observable="config.max_num_seqs", op="==", value=64), same).holds is True
    assert evaluate(Check(observable="config.max_num_seqs", op=">", value=64), same).holds is False
    assert evaluate(Check(observable="config.enable_prefix_caching", op="==", value=True), same).holds is True
    assert evaluate(Check(observable="config.enable_prefix_caching", arm="baseline", op="!=", value=True), same).holds is True
    mixed = [same[0], (same[0][0], run(config_d_max_num_seqs=64, config_d_enable_prefix_caching=False))]
    assert evaluate(Check(observable="config.enable_prefix_caching", op="==", value=True), mixed).holds is False


def test_what_was_not_measured_can_not_be_told():
    seen = evaluate(Check(observable="acceptance_length", op=">", value=1.0), [(run(), run())])
    assert seen.holds is None and seen.value is None and "was not measured" in seen.reason
    assert evaluate(Check(observable="preemptions", arm="ratio", op=">", value=2.0), pairs("preemptions", (0, 0), (3, 4))).holds is None


def test_capacity_is_an_observable():
    assert evaluate(Check(observable="capacity_rps_per_gpu", arm="difference", op=">", value=1), [(run(10.0), run(12.0)), (run(10.1), run(12.1)), (run(10), run(12.1))]).holds


def broken(**kwargs) -> list[str]:
    return [r.check.observable for r in guard(**{"floor": (), "sla": SLA_BOTH, "lossless": True} | kwargs) if r.holds is False]


def test_a_sham_breaks_no_guardrail():
    same = {g.observable.replace("@", "__"): 0.4 for g in GUARDRAILS}
    assert broken(pairs=[(run(**same, attainment__1_0=0.96), run(**same))] * 3) == []
    assert broken(pairs=[(run(), run())] * 2) == [], "what was not measured breaks nothing"


def test_a_latency_inside_its_bound_may_grow():
    name = "tpot_p99_s__0.8"
    slower = pairs(name, (0.010, 0.0101, 0.0099), (0.030, 0.0301, 0.0299))
    slower = [(b.model_copy(update={"observables": b.observables | {"attainment@0.8": 0.99}}), c) for b, c in slower]
    assert broken(pairs=slower) == [], "0.030 s is inside the bound of 0.05 s"
    assert broken(pairs=slower, sla=SLA(ttft_s=1.0, tpot_s=0.02)) == ["tpot_p99_s@0.8"]
    assert broken(pairs=slower, sla=SLA(ttft_s=1.0)) == ["tpot_p99_s@0.8"], "without a bound it may not double"


def test_errors_and_preemptions():
    assert broken(pairs=pairs("error_share__1.5", (0.0, 0.0, 0.0), (0.2, 0.21, 0.2)), floor=floor("error_share__1.5", 0.0, 0.0, 0.0)) == ["error_share@1.5"]
    assert broken(pairs=pairs("error_share__1.5", (0.3, 0.31), (0.1, 0.12))) == []
    assert broken(pairs=pairs("preemptions", (0, 0, 0), (400, 410, 405))) == ["preemptions"]
    assert broken(pairs=pairs("preemptions", (0, 0, 0), (4, 6, 5))) == [], "a handful more is no harm"
    assert broken(pairs=pairs("launch_s", (10, 10.1, 9.9), (50, 50.2, 49.9))) == [], "fifty seconds are no harm"


def test_answer_lengths_of_a_lossless_change():
    shorter = pairs("output_tokens_mean__0.8", (100, 100, 100), (80, 80.1, 79.9))
    assert broken(pairs=shorter) == ["output_tokens_mean@0.8"] and broken(pairs=shorter, lossless=False) == []


def probe(shift: float, tokens: int = 8) -> Probe:
    return Probe(logprobs=(tuple(-1.0 - 0.1 * i - shift for i in range(tokens)),))


def test_parity(maker):
    m = maker()

    def runs(*shifts: float):
        return [m.run("baseline", i, 10.0, probe=probe(shift)) for i, shift in enumerate(shifts)]

    assert parity(runs(0.0, 0.001), runs(0.0005, 0.002)).kept is True
    assert parity(runs(0.0, 0.001), runs(0.0005, 0.05)).kept is False, "one moved run shows"
    assert parity(runs(0.0, 0.001), runs(0.05), floor=runs(0.0, 0.02)).kept is True, "baselines that differ more allow more"
    assert parity(runs(0.0), [m.run("candidate", 0, 10.0, probe=probe(0.0, tokens=7))]).kept is False
    missing = parity(runs(0.0), [m.run("candidate", 0, 10.0, probe=Probe(why_missing="not offered"))])
    assert missing.kept is None and "not offered" in missing.reason and "candidate" in missing.reason
    assert distance(probe(0.0), probe(0.02)) == pytest.approx(0.02)
