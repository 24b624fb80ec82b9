"""Whole campaigns by the playbook: what the ledger holds at the end depends on the endpoint."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.runtime import RunControl

from servewright.graph.bridge import reply
from servewright.graph.show import Teller, result
from servewright.tools.ledger.verify import verify


async def test_a_badly_configured_endpoint_ends_with_a_verified_stack_also_when_stopped_on_the_way(crew: SimpleNamespace, tmp_path: Path) -> None:
    whole = crew.Whole(tmp_path / "project", crew.endpoint_file(tmp_path, crew.BAD))
    control = RunControl()

    def stop_at_the_first_experiment(event: dict[str, Any]) -> None:
        if event.get("kind") == "experiment":
            control.request_drain("test")

    ending = await whole.go(hear=stop_at_the_first_experiment, control=control)
    assert ending.how == "drained" and whole.campaign.view().state == "measured"
    before = [entry.hash for entry in whole.campaign.project.ledger.entries()]

    heard: list[dict[str, Any]] = []
    ending = await whole.go(hear=heard.append)
    view, closing, ledger = whole.campaign.view(), ending.state.closing, whole.campaign.project.ledger
    assert ending.how == "finished" and closing is not None and view.state == "closed"
    assert [entry.hash for entry in ledger.entries()][: len(before)] == before
    finished = [entry.body["run"] for entry in ledger.entries("run_finished")]
    assert len(finished) == len(set(finished)), "no run was made twice"

    assert view.stack.accepted and "max_num_seqs" in view.stack.changes
    assert closing.stack_verdict is not None and closing.stack_verdict.verdict == "supported"
    assert closing.shams and closing.shams_kept == 0
    assert {h.hypothesis.proposer.partition(":")[0] for h in view.hypotheses} == {"playbook", "search"}
    assert all(f.fate in ("tried", "ruled_out", "not_applicable", "put_off") and f.reason for f in view.families)
    assert not verify(whole.campaign.project).problems
    assert told_in_full(view, closing, ending, heard)

    again = await whole.go()
    assert again.how == "finished" and again.state.closing == closing
    assert whole.entered == 2, "a finished campaign starts no tools"


def told_in_full(view: Any, closing: Any, ending: Any, heard: list[dict[str, Any]]) -> bool:
    text = "\n".join(result(view, closing, ending.state.usage))
    for word in (
        "Baseline",
        "Noise",
        "Explanation",
        "Intervention",
        "Prediction",
        "Falsification",
        "Verdict",
        "Shams",
        "Families",
        "Stack",
        "Run it",
        "--max-num-seqs",
        "Ledger",
    ):
        assert word in text
    out = io.StringIO()
    teller = Teller(out)
    for event in heard:
        teller.hear(event)
    assert "SUPPORTED" in out.getvalue() and "\x1b" not in out.getvalue()
    return True


async def test_a_well_configured_endpoint_ends_with_nothing_found(crew: SimpleNamespace, tmp_path: Path) -> None:
    whole = crew.Whole(tmp_path / "project", crew.endpoint_file(tmp_path, crew.GOOD))
    ending = await whole.go()
    assert "nothing found" in ending.state.closing.sentence.lower()
    assert not whole.campaign.view().stack.accepted
    assert ending.state.closing.command == whole.campaign.command(whole.campaign.original)


async def test_a_model_that_only_talks_ends_the_campaign_with_honest_fates(crew: SimpleNamespace, tmp_path: Path) -> None:
    whole = crew.Whole(tmp_path / "project", crew.endpoint_file(tmp_path, crew.BAD, shams=0))
    ending = await whole.go(Talker(), name="any:talker")
    view = whole.campaign.view()
    assert ending.how == "finished" and view.state == "closed" and not view.hypotheses and not view.stack.accepted
    assert all(f.fate == "put_off" and "no usable Finding" in f.reason for f in view.families)
    assert ending.state.usage.requests == ending.state.usage.uncounted == 18, "eight investigators and a planner, asked twice each"


class Talker(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "talker"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("You should buy more GPUs. Verdict: supported!"))])


async def test_what_needs_a_person_waits_and_goes_on_with_the_answers(crew: SimpleNamespace, tmp_path: Path) -> None:
    whole = crew.Whole(tmp_path / "project", crew.endpoint_file(tmp_path, crew.BAD, lossless="ask"))
    assert (await whole.go()).how == "waiting"
    assert (await whole.go()).how == "waiting", "asking again changes nothing"
    waits = whole.campaign.view().hypotheses
    assert len(waits) == 2 and all(h.state == "needs_approval" for h in waits)

    elsewhere, here = waits
    whole.campaign.approve(elsewhere.id, False, "user:another-terminal")
    asked: list[str] = []
    ending = await whole.go(answer=says_no(asked))
    assert ending.how == "finished"
    assert asked.count(here.id) == 1
    assert {h.state for h in whole.campaign.view().hypotheses} == {"denied"}
    answers = {entry.body["subject"]: entry.body["author"] for entry in whole.campaign.project.ledger.entries("approval")}
    assert answers == {elsewhere.id: "user:another-terminal", here.id: "mcp-client"}


def says_no(asked: list[str]) -> Callable[..., Any]:
    async def answer(questions: Any) -> dict[str, Any]:
        asked.extend(q.value["about"]["arguments"]["hypothesis_id"] for q in questions)
        no = {"action": "accept", "content": {"approve": False}}
        return {q.id: reply(q.value, dict.fromkeys(q.value["requests"], no)) for q in questions}

    return answer
