"""Who answers when a change needs a person's yes: the person at the terminal, a policy, or nobody yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from .show import clean

if TYPE_CHECKING:
    from langgraph.types import Interrupt

    from ..tools.experiment.views import CampaignView

Policy = Literal["ask", "park", "deny"]
"""ask: the person at the terminal; park: the campaign waits, and `servewright approve` or `deny` answers; deny: no."""


class Desk:
    """Answers the questions of interrupts by one policy."""

    def __init__(self, policy: Policy, look: Callable[[], CampaignView], say: Callable[[str], None]) -> None:
        self._policy, self._look, self._say = policy, look, say

    async def answer(self, questions: Sequence[Interrupt]) -> dict[str, Any] | None:
        """Answers by interrupt id; None when any of them has to wait. What was answered in another terminal is not asked again."""
        from .bridge import reply
        from .gate import waiting

        open_ = set(waiting(await asyncio.to_thread(self._look)))
        answers: dict[str, Any] = {}
        for question in questions:
            requests: dict[str, Any] = question.value["requests"]
            if question.value["about"]["arguments"].get("hypothesis_id") not in open_:
                answers[question.id] = reply(question.value, {key: {"action": "cancel"} for key in requests})
            elif self._policy == "park":
                return None
            else:
                answers[question.id] = reply(question.value, {key: await self._one(request) for key, request in requests.items()})
        return answers

    async def _one(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._policy == "deny":
            self._say(f"denied (--approvals deny): {request['message']}")
            return {"action": "decline"}
        self._say(request["message"])
        yes = (await asyncio.to_thread(input, "approve? [y/N] ")).strip().lower() in ("y", "yes")
        return {"action": "accept", "content": {"approve": yes}}


def waiting_text(view: CampaignView, thread: str, project: str) -> str:
    """What to type to go on."""
    from .gate import waiting

    lines = [f"investigation {thread} waits for a person:"]
    known = {h.id: h for h in view.hypotheses}
    lines += [f"  servewright approve {thread} {h}{project}    # or deny: {clean(known[h].hypothesis.title)}" for h in waiting(view)]
    return "\n".join([*lines, f"  servewright resume {thread}{project}"])
