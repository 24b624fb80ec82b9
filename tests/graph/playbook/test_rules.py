"""The rules on constructed evidence: each proposes what its evidence speaks for, and says why it doesn't otherwise."""

from __future__ import annotations

from typing import Any

import pytest

from servewright.graph.playbook.facts import Change, Facts, NeedsSimulation
from servewright.graph.playbook.rules import PROPOSING, RULES, investigate
from servewright.graph.state import Finding
from servewright.tools.contract.base import canonical
from servewright.tools.contract.configuration import Configuration
from servewright.tools.contract.endpoint import Family
from servewright.tools.contract.series import MeasurementPolicy, Series
from servewright.tools.contract.sla import SLA
from servewright.tools.contract.verdict import NoiseFloor
from servewright.tools.experiment.views import BaselineView, Budget, CampaignView, SimulatedEffect, StackView

EFFECTIVE: dict[str, Any] = {
    "max_num_seqs": 256,
    "max_num_batched_tokens": 2048,
    "enable_prefix_caching": True,
    "gpu_memory_utilization": 0.9,
    "num_gpu_blocks": 20000,
}
CALM: dict[str, Any] = {
    "running_max": 40, "running_mean": 20.0, "waiting_mean": 0.4, "kv_usage_max": 0.3, "preemptions": 0, "prefix_hit_share": 0.5, "kv_blocks": 20000,
    "tpot_p50_s@1.0": 0.012, "tpot_p99_s@1.0": 0.015, "ttft_p99_s@1.0": 0.4, "capacity_rps_per_gpu": 5.0,
}  # fmt: skip
WORKLOAD: dict[str, Any] = {"figures.prefix_hit_tokens_infinite_cache": 0.52, "figures.input_mean": 2000.0, "figures.input_p99": 8000, "requests": 1000}
SERIES = Series(
    workload="0" * 64, workload_class="declared_synthetic", window="held_out", ladder=(1.0, 2.0), reference_capacity=5.0, sla=SLA(ttft_s=2.0, tpot_s=0.05), hardware="h", gpus=1,
    engine="sim", engine_build="b", model="m",
    policy=MeasurementPolicy(mode="virtual", clock=1, window_s=20, warmup_s=2, drain_s=20, cache_policy="cold", climb=True),
)  # fmt: skip
ENDPOINT: dict[str, Any] = {
    "model": "llama-3.1-8b", "sla": {"ttft_s": 2.0, "tpot_s": 0.05}, "minimum_effect": 0.05, "hardware": {"gpus": 1}, "permissions": {"lossy": "ask", "source": "ask"},
}  # fmt: skip


def facts(
    observables: dict[str, Any] | None = None,
    effective: dict[str, Any] | None = None,
    *,
    mde: float = 0.03,
    workload: dict[str, Any] | None = None,
    **endpoint: Any,
) -> Facts:
    baseline = BaselineView(
        series=SERIES, series_id=SERIES.id(), capacity_rps_per_gpu=5.0, floor=NoiseFloor(sd=0.01, df=2, low=0.005, high=0.05, values=(5.0, 5.1, 4.9)),
        minimum_detectable_effect=mde, observables=CALM | (observables or {}), effective=EFFECTIVE | (effective or {}), workload=WORKLOAD | (workload or {}), warnings=(),
    )  # fmt: skip
    view = CampaignView(
        id="t", thread="t", state="measured", endpoint="e", baseline=baseline, hypotheses=(), families=(),
        stack=StackView(accepted=(), awaiting_approval=(), configuration=Configuration(kind="sim"), changes={}),
        budget=Budget(launches=3, launches_limit=60, replay_s=1, replay_s_limit=100, wall_s=1, wall_s_limit=100),
    )  # fmt: skip
    return Facts(baseline=baseline, view=view, endpoint=ENDPOINT | endpoint)


def answer(family: Family, known: Facts, effects: dict[Any, float] | float | str) -> tuple[Finding, list[Change]]:
    """The rule's answer where the simulator gives these effects: one for all, by value, or an error."""
    asked: list[Change] = []
    while True:
        try:
            return investigate(family, known), asked
        except NeedsSimulation as needs:
            assert needs.changes, "nothing would be asked for ever"
            for change in needs.changes:
                asked.append(change)
                value = effects.get(next(iter(change.values())), 0.0) if isinstance(effects, dict) else effects
                known.simulated[canonical(change)] = (
                    value if isinstance(value, str) else SimulatedEffect(capacity_rps_per_gpu=5 * (1 + value), effect=value, observables={}, caveat="predicted")
                )


PINNED = {"running_max": 8, "waiting_mean": 6.0, "kv_usage_max": 0.1}


def test_requests_that_wait_for_a_slot_beside_free_memory_get_more_slots() -> None:
    finding, asked = answer("scheduling", facts(PINNED, {"max_num_seqs": 8}), {16: 0.4, 32: 0.79, 64: 0.8, 128: 0.8})
    assert len(asked) >= 3
    (h,) = finding.hypotheses
    assert h.intervention.set == {"max_num_seqs": 32}, "the smaller of two values that are equally good"
    assert "8" in h.explanation and "10%" in h.explanation and "not evidence" in h.explanation
    assert 0.3 < h.prediction.low < 0.79 < h.prediction.high
    names = {(c.observable, c.op, c.value) for c in h.activation}
    assert ("config.max_num_seqs", "==", 32) in names and ("running_max", ">", 8.0) in names
    assert any(c.observable.startswith("ttft") and c.arm == "ratio" for c in h.falsifiers)
    assert h.proposer == "playbook:more_sequences"


@pytest.mark.parametrize(
    ("observables", "effective", "words"),
    [
        ({}, {}, "peaked at 40 of 256 slots"),
        ({"running_max": 8, "waiting_mean": 6.0, "kv_usage_max": 0.97}, {"max_num_seqs": 8}, "would not find memory"),
    ],
)
def test_slots_are_ruled_out_by_a_measurement(observables: dict[str, Any], effective: dict[str, Any], words: str) -> None:
    finding, asked = answer("scheduling", facts(observables, effective), 0.0)
    assert finding.nothing is not None and finding.nothing.fate == "ruled_out" and words in finding.nothing.reason
    assert not asked, "nothing is simulated for what the evidence rules out"


def test_a_gain_below_what_can_be_detected_is_put_off() -> None:
    finding, _ = answer("scheduling", facts(PINNED, {"max_num_seqs": 8}, mde=0.3), 0.2)
    assert finding.nothing is not None and finding.nothing.fate == "put_off" and "+20.0%" in finding.nothing.reason


def test_a_large_gain_in_much_noise_is_tested_against_what_the_noise_lets_see() -> None:
    finding, _ = answer("scheduling", facts(PINNED, {"max_num_seqs": 8}, mde=0.2), 2.0)
    assert finding.hypotheses[0].minimum_effect == pytest.approx(0.3)
    finding, _ = answer("scheduling", facts(PINNED, {"max_num_seqs": 8}), 2.0)
    assert finding.hypotheses[0].minimum_effect is None


def test_without_a_simulator_a_rule_of_thumb_is_said_to_be_one() -> None:
    finding, _ = answer("scheduling", facts(PINNED, {"max_num_seqs": 8}), "no profile for this model")
    assert "rule of thumb" in finding.hypotheses[0].explanation and finding.hypotheses[0].intervention.set == {"max_num_seqs": 32}


def test_stalled_decodes_ask_for_a_smaller_budget_and_late_first_tokens_for_a_larger_one() -> None:
    stalled = {"tpot_p99_s@1.0": 0.045}
    finding, _ = answer("scheduling", facts(stalled, {"max_num_batched_tokens": 8192}), {2048: 0.2})
    assert [h.intervention.set for h in finding.hypotheses] == [{"max_num_batched_tokens": 2048}]
    late = {"ttft_p99_s@1.0": 1.9}
    finding, _ = answer("scheduling", facts(late), {8192: 0.2})
    assert [h.intervention.set for h in finding.hypotheses] == [{"max_num_batched_tokens": 8192}]
    finding, _ = answer("scheduling", facts(stalled | late, {"max_num_batched_tokens": 4096}), 0.2)
    assert {h.proposer for h in finding.hypotheses} == {"playbook:smaller_batches", "playbook:larger_batches"}, "ambiguous evidence: both directions"


def test_prefix_caching_depends_on_what_the_trace_repeats() -> None:
    off = {"enable_prefix_caching": False}
    finding, _ = answer("prefix_caching", facts(effective=off), 0.5)
    (h,) = finding.hypotheses
    assert h.intervention.set == {"enable_prefix_caching": True} and "52%" in h.explanation
    assert any(c.observable == "prefix_hit_share" and c.op == "<" for c in h.falsifiers)
    finding, _ = answer("prefix_caching", facts(effective=off, workload={"figures.prefix_hit_tokens_infinite_cache": 0.01}), 0.5)
    assert finding.nothing is not None and finding.nothing.fate == "ruled_out" and "1.0%" in finding.nothing.reason
    finding, _ = answer("prefix_caching", facts(), 0.5)
    assert finding.nothing is not None and finding.nothing.fate == "ruled_out" and "50%" in finding.nothing.reason


def test_memory_is_short_when_blocks_run_out() -> None:
    finding, _ = answer("memory", facts(), 0.5)
    assert finding.nothing is not None and finding.nothing.fate == "ruled_out" and "30%" in finding.nothing.reason
    full = {"kv_usage_max": 0.99, "preemptions": 40}
    finding, _ = answer("memory", facts(full, {"gpu_memory_utilization": 0.6}), {0.92: 0.3, 0.95: 0.31})
    (h,) = finding.hypotheses
    assert h.intervention.set == {"gpu_memory_utilization": 0.92} and "40 preemptions" in h.explanation
    assert any(c.observable == "kv_blocks" and c.op == ">" and c.value == 20000 for c in h.activation)
    finding, _ = answer("memory", facts(full, {"num_gpu_blocks_override": 500}), {1000: 0.3})
    assert finding.hypotheses[0].intervention.set == {"num_gpu_blocks_override": 1000}
    finding, _ = answer("memory", facts(full, {"gpu_memory_utilization": 0.95}), 0.3)
    assert finding.nothing is not None and finding.nothing.fate == "ruled_out"


@pytest.mark.parametrize("family", [f for f in RULES if f not in PROPOSING])
def test_families_without_a_proposing_rule_give_a_reason_that_holds_here(family: Family) -> None:
    finding, asked = answer(family, facts(), 0.0)
    assert finding.nothing is not None and finding.nothing.family == family and finding.nothing.fate in ("not_applicable", "put_off") and not asked
    several = facts(hardware={"gpus": 4}, permissions={"lossy": "deny", "source": "deny"})
    assert answer(family, several, 0.0)[0].nothing is not None


def test_every_rule_says_something_of_a_server_that_reports_nothing() -> None:
    known = facts()
    silent = Facts(baseline=known.baseline.model_copy(update={"observables": {}, "effective": {}, "workload": {}}), view=known.view, endpoint=known.endpoint)
    for family in RULES:
        finding, _ = answer(family, silent, 0.0)
        assert finding.nothing is not None and finding.nothing.fate in ("put_off", "not_applicable", "ruled_out")
