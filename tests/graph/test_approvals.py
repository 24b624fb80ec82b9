"""Who answers a question: the person, the policy, or nobody yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.types import Interrupt

from servewright.graph.approvals import Desk, Policy, waiting_text


def campaign(*waits: str) -> Any:
    hypotheses = [SimpleNamespace(id=name, state="needs_approval", hypothesis=SimpleNamespace(title=f"change {name}\x1b[2J")) for name in waits]
    return SimpleNamespace(hypotheses=hypotheses, stack=SimpleNamespace(awaiting_approval=()))


def question(hypothesis: str) -> Interrupt:
    about = {"tool": "experiment_ask_approval", "arguments": {"hypothesis_id": hypothesis}}
    return Interrupt(value={"about": about, "requests": {"k": {"message": f"May {hypothesis}?"}}}, id=f"i-{hypothesis}")


def desk(policy: Policy, said: list[str], *waits: str) -> Desk:
    return Desk(policy, lambda: campaign(*waits), said.append)


async def test_park_leaves_it_open_and_deny_says_no() -> None:
    said: list[str] = []
    assert await desk("park", said, "h-1").answer([question("h-1")]) is None
    denied = await desk("deny", said, "h-1").answer([question("h-1")])
    assert denied is not None and denied["i-h-1"]["responses"] == {"k": {"action": "decline"}} and "May h-1?" in said[0]


async def test_what_was_answered_elsewhere_is_passed_over_by_any_policy() -> None:
    for policy in ("park", "deny", "ask"):
        answers = await desk(policy, [], "h-2").answer([question("h-1")])
        assert answers is not None and answers["i-h-1"]["responses"] == {"k": {"action": "cancel"}}


@pytest.mark.parametrize(("typed", "yes"), [("y", True), ("YES", True), ("", False), ("n", False), ("please", False)])
async def test_a_person_says_yes_in_words(monkeypatch: pytest.MonkeyPatch, typed: str, yes: bool) -> None:
    monkeypatch.setattr("builtins.input", lambda _prompt: typed)
    answers = await desk("ask", [], "h-1").answer([question("h-1")])
    assert answers is not None and answers["i-h-1"]["responses"]["k"] == {"action": "accept", "content": {"approve": yes}}


def test_the_parked_campaign_says_what_to_type() -> None:
    text = waiting_text(campaign("h-1", "h-2"), "nightly", " --project p")
    assert "servewright approve nightly h-1 --project p" in text and "servewright resume nightly --project p" in text and "\x1b" not in text
