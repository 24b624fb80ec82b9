from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from servewright.tools.contract.errors import BadInput, Refused
from servewright.tools.ledger import campaigns, floors, runs
from servewright.tools.ledger.project import Project
from servewright.tools.ledger.records import Approval, Summary
from servewright.tools.ledger.seals import SealBook


def test_opening_is_idempotent(campaign: Any) -> None:
    again = campaigns.open_campaign(campaign.project, "c1", campaign.endpoint, seed=99, versions={})
    assert again.seed == 1
    assert campaigns.open_series(campaign.project, "c1", campaign.series) == campaign.series.id()
    assert len(campaign.project.ledger.entries()) == 2


def test_an_experiment_is_registered_once_and_by_the_rules(campaign: Any, make: SimpleNamespace) -> None:
    campaign.floor()
    plan = campaign.plan()
    assert campaigns.register(campaign.project, plan) == campaigns.register(campaign.project, plan) == plan.id()
    stranger = campaign.series.model_copy(update={"window": "explore"})
    noise = campaign.noise.model_copy(update={"sd": 0.0001})
    odd = plan.candidate.model_copy(update={"args": plan.candidate.args | {"block_size": 32}})
    unknown = plan.hypothesis.model_copy(update={"title": "never proposed"})
    for text, changes in {
        "another plan already": {"seed": 4},
        "isn't opened": {"number": 2, "series": stranger},
        "noise floor": {"number": 2, "floor": noise},
        "differ in block_size": {"number": 2, "candidate": odd},
        "isn't recorded": {"number": 2, "hypothesis": unknown},
        "isn't this version's": {"number": 2, "rule": "whatever-1"},
        "more than the 0.04": {"number": 2, "alpha": 0.041},
    }.items():
        with pytest.raises(Refused, match=text):
            campaigns.register(campaign.project, plan.model_copy(update=changes))
    assert campaigns.plans(campaign.project, "c1") == [plan]


def test_the_floor_is_over_all_usable_floor_runs(campaign: Any, make: SimpleNamespace) -> None:
    campaign.run("floor", "baseline", 0, campaign.artifacts(8.0), configuration=make.BASE)
    with pytest.raises(Refused, match="two usable floor runs"):
        floors.record_floor(campaign.project, "c1", campaign.series.id())
    campaign.floor()
    assert floors.record_floor(campaign.project, "c1", campaign.series.id()) == campaign.noise
    late = campaign.artifacts(8.0)
    late = late.model_copy(update={"client": late.client.model_copy(update={"cpu_share": 1.0, "lateness_p99_s": 5.0})})
    campaign.run("floor", "baseline", 3, late, configuration=make.BASE)
    assert floors.record_floor(campaign.project, "c1", campaign.series.id()).values == campaign.noise.values
    bodies = [entry.body for entry in campaign.project.ledger.entries("floor")]
    assert [len(body["left_out"]) for body in bodies] == [0, 1] and len(campaign.noise.values) == 3


def test_other_campaigns_runs_sharpen_the_spread_and_leave_the_values(campaign: Any, make: SimpleNamespace) -> None:
    campaign.floor()
    (campaign.folder / "second").mkdir()
    second = make.Campaign(campaign.folder / "second", "c2")
    second.project = campaign.project
    campaigns.open_campaign(second.project, "c2", second.endpoint, seed=1, versions={})
    second._made = 50
    second.floor((8.05, 8.2))
    assert len(second.noise.values) == 2 and second.noise.df == 3


def test_only_what_is_supported_and_permitted_joins_the_stack(campaign: Any) -> None:
    campaign.floor()
    plan = campaign.plan()
    name = campaigns.hypothesis_id("c1", plan.hypothesis)
    with pytest.raises(Refused, match="no supported verdict"):
        campaigns.record_stack(campaign.project, "c1", [name], plan.candidate)
    campaigns.approve(campaign.project, Approval(campaign="c1", subject=name, answer=True, author="policy:team.yaml"))
    campaigns.approve(campaign.project, Approval(campaign="c1", subject=name, answer=False, author="Ada"))
    assert campaigns.approved(campaign.project, name) is False and campaigns.approved(campaign.project, "h-x") is None


def test_closing_opens_every_seal_and_ends_the_campaign(campaign: Any, make: SimpleNamespace) -> None:
    campaign.floor()
    plan = campaign.plan()
    project, openings = campaign.project, campaign.book.openings()
    with pytest.raises(Refused, match="seals not opened"):
        campaigns.close_campaign(project, "c1", openings=(), summary=Summary())
    lie = tuple(opening.model_copy(update={"nature": "sham"}) for opening in openings)
    with pytest.raises(Refused, match="seals not opened"):
        campaigns.close_campaign(project, "c1", openings=lie, summary=Summary())
    going = runs.reserve(project, campaign="c1", kind="floor", arm="baseline", pair=8, configuration=make.BASE, series=campaign.series.id())
    with pytest.raises(Refused, match="still being measured"):
        campaigns.close_campaign(project, "c1", openings=openings, summary=Summary())
    runs.abort(project, going.id, "not needed")
    closed = campaigns.close_campaign(project, "c1", openings=openings, summary=Summary(result="nothing found"))
    assert closed == campaigns.close_campaign(project, "c1", openings=(), summary=Summary())
    assert campaigns.closing(project, "c1") == closed and closed.entries["hypothesis"] == 1
    for act in (
        lambda: campaigns.propose(project, "c1", campaign.hypothesis(32), lossless=True, seal="0" * 64),
        lambda: campaigns.register(project, plan),
        lambda: runs.reserve(project, campaign="c1", kind="floor", arm="baseline", pair=9, configuration=make.BASE, series=campaign.series.id()),
    ):
        with pytest.raises(Refused, match="closed"):
            act()


def test_the_ledger_never_tells_a_sham_before_the_closing(campaign: Any) -> None:
    for seqs, nature in ((16, "genuine"), (24, "sham")):
        idea = campaign.hypothesis(seqs)
        name = campaigns.hypothesis_id("c1", idea)
        seal = campaign.book.seal(name, nature)
        assert campaign.book.seal(name, nature) == seal
        campaigns.propose(campaign.project, "c1", idea, lossless=True, seal=seal)
    told = [entry.body for entry in campaign.project.ledger.entries("hypothesis")]
    assert {frozenset(body) for body in told} == {frozenset({"campaign", "hypothesis", "lossless", "seal"})}
    assert len({body["seal"] for body in told}) == 2
    assert not any(word in path.read_bytes() for path in campaign.project.folder.rglob("*") if path.is_file() for word in (b'"sham"', b"genuine"))
    assert campaign.book.path.stat().st_mode & 0o077 == 0
    assert SealBook(campaign.book.path).nature(name) == "sham"


def test_a_project_is_not_made_by_looking(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--project"):
        Project.existing(tmp_path / "nothing")
    assert list(tmp_path.iterdir()) == []
    for thread in ("", "../up", "a/b", ".hidden", "x" * 64):
        with pytest.raises(BadInput):
            Project(tmp_path).campaign_folder(thread)
