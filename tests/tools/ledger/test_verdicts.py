from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from servewright.tools.contract.errors import Refused
from servewright.tools.contract.run import Failure
from servewright.tools.ledger import campaigns, runs
from servewright.tools.ledger.evidence import evidence
from servewright.tools.ledger.verdicts import judged, record_verdict, verdict_of


@pytest.fixture
def plan(campaign: Any) -> Any:
    campaign.floor()
    plan = campaign.plan()
    campaigns.register(campaign.project, plan)
    return plan


def test_a_large_gain_is_supported_once_and_no_run_can_follow(campaign: Any, plan: Any, make: SimpleNamespace) -> None:
    for pair in range(2):
        campaign.pair(plan, pair, 8.0 + pair / 50, 12.0)
    verdict = record_verdict(campaign.project, plan.id())
    assert verdict.verdict == "supported" and verdict.effect == pytest.approx(0.5, abs=0.05)
    assert record_verdict(campaign.project, plan.id(), closed=True) == verdict == verdict_of(campaign.project, plan.id())
    assert len(campaign.project.ledger.entries("verdict")) == 1
    with pytest.raises(Refused, match="has its verdict"):
        runs.reserve(
            campaign.project, campaign="c1", kind="confirm", arm="baseline", pair=2, configuration=make.BASE, experiment=plan.id(), series=plan.series.id()
        )
    name = campaigns.hypothesis_id("c1", plan.hypothesis)
    campaigns.record_stack(campaign.project, "c1", [name], plan.candidate)
    campaigns.record_stack(campaign.project, "c1", [name], plan.candidate)
    assert len(campaign.project.ledger.entries("stack")) == 1
    assert campaigns.alpha_left(campaign.project, "c1") == campaign.endpoint.alpha


def test_a_loss_is_refuted_and_its_alpha_is_gone(campaign: Any, plan: Any) -> None:
    for pair in range(2):
        campaign.pair(plan, pair, 8.0, 6.0)
    assert record_verdict(campaign.project, plan.id()).verdict == "refuted"
    assert campaigns.alpha_left(campaign.project, "c1") == pytest.approx(campaign.endpoint.alpha - plan.alpha)


def test_no_verdict_while_the_rule_wants_another_pair(campaign: Any, plan: Any) -> None:
    with pytest.raises(Refused, match="isn't at its end"):
        record_verdict(campaign.project, plan.id())
    campaign.pair(plan, 0, 8.0, 12.0)
    with pytest.raises(Refused, match="isn't at its end"):
        record_verdict(campaign.project, plan.id())
    assert record_verdict(campaign.project, plan.id(), closed=True).verdict == "inconclusive"


def test_no_verdict_on_what_is_not_registered_or_still_runs(campaign: Any, plan: Any, make: SimpleNamespace) -> None:
    with pytest.raises(Refused, match="isn't registered"):
        record_verdict(campaign.project, "e-000000000000", closed=True)
    run = runs.reserve(
        campaign.project, campaign="c1", kind="confirm", arm="baseline", pair=0, configuration=make.BASE, experiment=plan.id(), series=plan.series.id()
    )
    runs.start(campaign.project, run.id)
    with pytest.raises(Refused, match="still running"):
        record_verdict(campaign.project, plan.id(), closed=True)


def test_a_change_without_activation_or_parity_is_not_supported(campaign: Any, plan: Any) -> None:
    for pair in range(2):
        campaign.pair(plan, pair, 8.0, 12.0, effective=8)
    assert record_verdict(campaign.project, plan.id(), closed=True).verdict == "not_activated"
    other = campaign.plan(number=2, seqs=32)
    campaigns.register(campaign.project, other)
    for pair in range(2):
        campaign.pair(other, pair, 8.0, 12.0, shift=0.5)
    verdict = record_verdict(campaign.project, other.id(), closed=True)
    assert verdict.verdict == "refuted" and verdict.parity and verdict.parity.kept is False


def test_a_candidate_that_dies_is_infeasible(campaign: Any, plan: Any, make: SimpleNamespace) -> None:
    dead = campaign.artifacts(8.0, failure=Failure(kind="bad_flag", line="error: no such flag", stage="start"))
    campaign.run("confirm", "baseline", 0, campaign.artifacts(8.0), experiment=plan.id(), configuration=make.BASE)
    campaign.run("confirm", "candidate", 0, dead, experiment=plan.id(), configuration=plan.candidate)
    assert record_verdict(campaign.project, plan.id()).verdict == "infeasible"


def test_the_evidence_is_every_finished_run_measured_from_its_rows(campaign: Any, plan: Any) -> None:
    campaign.pair(plan, 0, 8.0, 12.0)
    given = evidence(campaign.project, plan.id())
    assert [(run.kind, run.arm) for run in given.runs] == [("confirm", "baseline"), ("confirm", "candidate")]
    assert [run.measurement.capacity.rps_per_gpu for run in given.runs if run.measurement] == pytest.approx([8, 12], rel=0.02)
    assert len(given.baseline_probes) == 3 and all(run.probe.logprobs for run in (*given.runs, *given.baseline_probes))
    stranger = given.runs[0].model_copy(update={"series": "s-other"})
    with pytest.raises(Refused, match="series"):
        judged(given.model_copy(update={"runs": (stranger, *given.runs[1:]), "closed": True}))
