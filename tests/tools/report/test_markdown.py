from __future__ import annotations

from typing import Any

import pytest

from servewright.tools.contract.errors import BadInput
from servewright.tools.ledger import campaigns
from servewright.tools.ledger.records import Summary
from servewright.tools.ledger.verdicts import record_verdict
from servewright.tools.report.markdown import render


def test_a_closed_campaign_is_told_in_full(campaign: Any) -> None:
    campaign.floor()
    good, bad = campaign.plan(), campaign.plan(number=2, seqs=4)
    sham = campaign.hypothesis(9)
    name = campaigns.hypothesis_id("c1", sham)
    campaigns.propose(campaign.project, "c1", sham, lossless=True, seal=campaign.book.seal(name, "sham"))
    for plan, capacity in ((good, 12.0), (bad, 6.0)):
        campaigns.register(campaign.project, plan)
        for pair in range(2):
            campaign.pair(plan, pair, 8.0 + pair / 50, capacity)
        record_verdict(campaign.project, plan.id())
    kept = campaigns.hypothesis_id("c1", good.hypothesis)
    campaigns.record_stack(campaign.project, "c1", [kept], good.candidate)
    campaigns.note(campaign.project, "campaign", "memory", campaign="c1", data={"family": "memory", "fate": "put_off", "reason": "budget"})
    before = render(campaign.project, "c1")
    assert "isn't closed" in before and "sealed until" in before and "sham |" not in before
    summary = Summary(stopped="nothing left to try", command=("vllm", "serve", "a b", "--max-num-seqs", "16"))
    campaigns.close_campaign(campaign.project, "c1", openings=campaign.book.openings(), summary=summary)
    text = render(campaign.project, "c1")
    for said in (
        "Capacity rises from",
        "requests/s per GPU: +49",
        "ended because: nothing left to try",
        "Noise floor:",
        "running_max equals max_num_seqs",
        "`max_num_seqs=16`",
        "capacity_rps_per_gpu higher, +10.0% to +60.0%",
        "refuted if median(capacity_rps_per_gpu, ratio) < 1",
        "| supported |",
        "| refuted |",
        "Capacity per GPU: **12.0",
        "that of a ratio, shown on this baseline",
        "of which kept: **0**",
        f"`{name}`",
        "| memory | put_off: budget |",
        "| scheduling | tried",
        "| launches | 11 | 60 |",
        "vllm serve 'a b' --max-num-seqs 16",
        f"--head {campaign.project.ledger.head()[1]}",
    ):
        assert said in text, said
    assert text == render(campaign.project, "c1")


def test_nothing_found_is_told_plainly(campaign: Any) -> None:
    assert "The baseline has not been measured." in render(campaign.project, "c1")
    campaign.floor()
    assert "Nothing found that the budget could detect" in render(campaign.project, "c1")
    assert "The original configuration: no change was accepted." in render(campaign.project, "c1")
    with pytest.raises(BadInput, match="one of c1"):
        render(campaign.project, "c2")


def test_text_of_a_model_stays_in_its_cell(campaign: Any) -> None:
    campaign.floor()
    idea = campaign.hypothesis().model_copy(update={"explanation": "a | b\n\n# heading <script>alert(1)</script>"})
    campaigns.propose(campaign.project, "c1", idea, lossless=True, seal="0" * 64)
    text = render(campaign.project, "c1")
    assert "a \\| b # heading &lt;script>" in text and "\n# heading" not in text
