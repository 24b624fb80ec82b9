"""The seven verdicts, what comes before what, and what is due next; on evidence made by hand."""

from __future__ import annotations

import pytest

from servewright.tools import judgement
from servewright.tools.contract.errors import Refused
from servewright.tools.contract.hypothesis import Check
from servewright.tools.contract.run import Probe
from servewright.tools.judgement import advance, judge

BASE, BETTER, SAME, WORSE = (10.0, 10.1), (12.0, 12.1), (10.05, 10.0), (9.0, 9.1)


def test_supported(maker):
    evidence = maker().pairs(BASE, BETTER).evidence()
    verdict = judge(evidence)
    assert verdict.verdict == "supported", verdict.reason
    assert verdict.pairs == 2 and verdict.interval and verdict.interval[0] > 0 and verdict.effect == pytest.approx(0.199, abs=0.002)
    assert verdict.parity and verdict.parity.kept and verdict.predicted
    assert "+19.9%" in verdict.reason
    assert advance(evidence).action == "stop"


def test_refuted_by_the_interval(maker):
    verdict = judge(maker().pairs(BASE, WORSE).evidence())
    assert verdict.verdict == "refuted" and verdict.interval and verdict.interval[1] < verdict.minimum_effect


def test_refuted_by_a_falsifier(maker):
    verdict = judge(maker().pairs(BASE, BETTER, observables={"waiting_mean": 9.0}).floor_runs().evidence())
    assert verdict.verdict == "refuted" and "falsifier" in verdict.reason and "waiting_mean" in verdict.reason


def test_refuted_by_parity(maker):
    moved = Probe(logprobs=((-1.2, -0.9, -2.0), (-0.1, -0.2, -0.3)))
    verdict = judge(maker().pairs(BASE, BETTER, probe=moved).evidence())
    assert verdict.verdict == "refuted" and "parity" in verdict.reason
    lossy = judge(maker(lossless=False).pairs(BASE, BETTER, probe=moved).evidence())
    assert lossy.verdict == "supported" and lossy.parity and lossy.parity.kept is False


def test_refuted_by_a_guardrail(maker):
    m = maker().pairs(BASE, BETTER, both={"observables": {"error_share@0.8": 0.0}}).floor_runs(observables={"error_share@0.8": 0.0})
    assert judge(m.evidence()).verdict == "supported"
    m = maker()
    for pair, (b, c) in enumerate(zip(BASE, BETTER, strict=True)):
        m.runs.append(m.run("baseline", pair, b, observables={"error_share@0.8": 0.0}))
        m.runs.append(m.run("candidate", pair, c, observables={"error_share@0.8": 0.08}))
    m.floor_runs(observables={"error_share@0.8": 0.0})
    verdict = judge(m.evidence())
    assert verdict.verdict == "refuted" and "guardrail" in verdict.reason and "error_share" in verdict.reason


def test_a_suspicion_asks_for_more_pairs(maker):
    m = maker()
    for pair, waiting in enumerate((2.0, 9.0)):
        m.runs += [m.run("baseline", pair, 10.0 + 0.01 * pair), m.run("candidate", pair, 12.0, observables={"waiting_mean": waiting})]
    assert advance(m.evidence()).action == "pair" and "waiting_mean" in advance(m.evidence()).reason
    assert judge(m.evidence(closed=True)).verdict == "supported"
    for pair in (2, 3):
        m.runs += [m.run("baseline", pair, 10.0), m.run("candidate", pair, 12.0, observables={"waiting_mean": 9.0})]
    assert advance(m.evidence()).action == "stop"


def test_inconclusive_when_the_pairs_run_out(maker):
    m = maker(max_pairs=3).pairs((10.0, 10.0, 10.0), (10.6, 10.0, 10.9))
    assert judge(m.evidence()).verdict == "inconclusive"
    assert advance(m.evidence()).action == "stop"


def test_closed_before_it_was_decided(maker):
    m = maker().pairs((10.0, 10.0), (10.6, 10.1))
    assert advance(m.evidence()).action == "pair" and advance(m.evidence()).pair == 2
    verdict = judge(m.evidence(closed=True))
    assert verdict.verdict == "inconclusive" and "no further pair" in verdict.reason
    assert advance(m.evidence(closed=True)).action == "stop"


def test_not_activated(maker):
    evidence = maker().pairs(BASE[:1], BETTER[:1], observables={"config.max_num_seqs": 8}).evidence()
    assert judge(evidence).verdict == "not_activated" and "config.max_num_seqs" in judge(evidence).reason
    assert advance(evidence).action == "stop", "an exact figure needs no second pair"


def test_not_activated_without_evidence(maker):
    assert judge(maker().pairs(BASE, BETTER, observables={"config.max_num_seqs": None}).evidence()).verdict == "not_activated"


def test_noisy_activation_asks_for_more_pairs(maker):
    activation = (Check(observable="kv_usage_max", op=">", value=0.5),)
    m = maker(activation=activation)
    for pair, usage in enumerate((0.4, 0.62)):
        m.runs.append(m.run("baseline", pair, 10.0, observables={"kv_usage_max": 0.1}))
        m.runs.append(m.run("candidate", pair, 12.0, observables={"kv_usage_max": usage}))
    assert advance(m.evidence()).action == "pair"
    assert judge(m.evidence(closed=True)).verdict == "not_activated"


def test_infeasible(maker, failure):
    m = maker(screen="pair")
    m.runs.append(m.run("candidate", 0, None, kind="screen", failure=failure))
    verdict = judge(m.evidence())
    assert verdict.verdict == "infeasible" and "CUDA out of memory" in verdict.reason
    assert advance(m.evidence()).action == "stop"


def test_a_taken_port_is_not_the_candidates_fault(maker, failure):
    m = maker()
    m.runs += [m.run("baseline", 0, 10.0), m.run("candidate", 0, None, failure=failure.model_copy(update={"kind": "port_taken"}))]
    assert advance(m.evidence()) .pair == 1
    assert judge(m.evidence(closed=True)).verdict == "invalid"


def test_a_baseline_failure_sets_the_pair_aside(maker, failure):
    m = maker()
    m.runs.append(m.run("baseline", 0, None, failure=failure))
    assert advance(m.evidence()).action == "pair" and advance(m.evidence()).pair == 1


def test_invalid_runs_are_set_aside_and_counted(maker):
    m = maker().pairs(BASE, BETTER)
    m.runs.append(m.run("baseline", 2, 10.0, invalid=("client late",)))
    assert advance(m.evidence()).action == "stop" and judge(m.evidence()).pairs == 2
    late = maker().pairs((10.0,) * 3, (12.0,) * 3, invalid=("client late: p99 0.4 s",))
    assert judge(late.evidence()).verdict == "invalid" and "client late" in judge(late.evidence()).reason


def test_untestable_before_the_first_run(maker, wide_floor):
    m = maker(floor=wide_floor)
    assert not judgement.testable(m.plan)[0]
    assert advance(m.evidence()).action == "stop" and judge(m.evidence()).verdict == "untestable"
    assert judgement.testable(maker(floor=wide_floor, purpose="stack").plan)[0], "the stack is measured whatever the floor"


def test_lossless_needs_parity(maker):
    silent = Probe(why_missing="the engine gives no prompt log-probabilities")
    one = judge(maker().pairs(BASE, BETTER, probe=silent).evidence())
    both = judge(maker().pairs(BASE, BETTER, both={"probe": silent}).evidence())
    assert one.verdict == both.verdict == "invalid" and "parity could not be measured" in one.reason
    assert judge(maker().pairs(BASE, WORSE, both={"probe": silent}).evidence()).verdict == "refuted"


def test_no_falsifier_could_be_evaluated(maker):
    verdict = judge(maker(falsifiers=(Check(observable="acceptance_length", op="<", value=1.0),)).pairs(BASE, BETTER).evidence())
    assert verdict.verdict == "invalid" and "acceptance_length" in verdict.reason


def test_order_of_precedence(maker, failure):
    off = {"config.max_num_seqs": 8, "waiting_mean": 9.0}
    m = maker().pairs((10.0,) * 3, (12.0,) * 3, observables=off, invalid=("client late",))
    assert judge(m.evidence()).verdict == "invalid", "a run that isn't fit says nothing of activation"
    m = maker().pairs(BASE, BETTER, observables=off)
    assert judge(m.evidence()).verdict == "not_activated", "before a falsifier"
    m.runs.append(m.run("candidate", 2, None, failure=failure))
    assert judge(m.evidence()).verdict == "infeasible", "before activation"


def test_screening(maker):
    m = maker(screen="pair")
    assert (advance(m.evidence()).action, advance(m.evidence()).pair) == ("screen", 0)
    m.runs += [m.run("baseline", 0, 10.0, kind="screen", series="s-other"), m.run("candidate", 0, 10.1, kind="screen", series="s-other")]
    assert advance(m.evidence()).action == "stop"
    verdict = judge(m.evidence())
    assert verdict.verdict == "inconclusive" and "screen" in verdict.reason and verdict.pairs == 0 and verdict.effect is None


def test_a_good_screen_leads_to_confirmation_and_is_no_evidence(maker):
    m = maker(screen="virtual")
    m.runs += [m.run("baseline", 0, 10.0, kind="screen", series="v"), m.run("candidate", 0, 20.0, kind="screen", series="v")]
    assert (advance(m.evidence()).action, advance(m.evidence()).pair) == ("pair", 0)
    m.pairs(BASE, SAME)
    verdict = judge(m.evidence())
    assert verdict.verdict in ("refuted", "inconclusive") and verdict.effect == pytest.approx(-0.0025, abs=0.001)


def test_a_half_done_pair_is_completed_first(maker):
    m = maker()
    m.runs.append(m.run("candidate", 0, 12.0))
    assert advance(m.evidence()).pair == 0


def test_foreign_runs_are_refused(maker):
    for change in ({"series": "s-000000000000"}, {"experiment": "e-x"}, {"configuration": "x"}, {"kind": "floor"}):
        m = maker()
        m.runs.append(m.run("baseline", 0, 10.0, **change))
        with pytest.raises(Refused):
            judge(m.evidence())
    m = maker().pairs(BASE, BETTER)
    m.runs.append(m.runs[0])
    with pytest.raises(Refused, match="twice"):
        judge(m.evidence())


def test_a_repeat_can_not_better_a_run(maker):
    m = maker().pairs((10.0, 10.0), (9.0, 9.1))
    m.runs.append(m.run("candidate", 0, 15.0, attempt=1))
    assert judge(m.evidence()).effect == pytest.approx(-0.095, abs=0.01)


@pytest.mark.parametrize(
    ("baseline", "candidate", "values", "expected"),
    [
        (None, "above", (10.0, 20.0), "supported"),
        ("above", None, (20.0, 10.0), "refuted"),
        ("above", "above", (20.0, 20.0), "invalid"),
        ("below", None, (5.0, 10.0), "supported"),
        (None, "below", (10.0, 5.0), "refuted"),
        ("above", None, (20.0, 24.0), "invalid"),
    ],
)
def test_censored_capacities(maker, baseline, candidate, values, expected):
    m = maker()
    for pair in range(2):
        m.runs.append(m.run("baseline", pair, values[0] * (1 + 0.002 * pair), censored=baseline))
        m.runs.append(m.run("candidate", pair, values[1], censored=candidate))
    verdict = judge(m.evidence())
    assert verdict.verdict == expected, verdict.reason
    assert verdict.censored


def test_a_wider_spread_is_reported(maker):
    m = maker(max_pairs=5, min_pairs=5).pairs((10.0, 10.05, 9.95, 10.0, 10.02), (10.0, 12.5, 9.2, 11.5, 10.4))
    verdict = judge(m.evidence())
    assert verdict.verdict == "inconclusive" and verdict.spread_ratio and verdict.spread_ratio > 5 and "spread" in verdict.reason


def test_judging_is_pure(maker):
    evidence = maker().pairs(BASE, BETTER).floor_runs().evidence()
    again = type(evidence).model_validate_json(evidence.model_dump_json())
    assert judge(again) == judge(evidence) == judge(evidence)
