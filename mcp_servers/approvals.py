"""A person's yes: asked through the client where it can ask, refused with the way to give it elsewhere. No tool answers for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import AcceptedElicitation, CancelledElicitation, DeclinedElicitation, Elicit
from mcp.types import ClientCapabilities
from pydantic import BaseModel, Field

from ..tools.contract.errors import Refused
from ..tools.contract.hypothesis import Intervention
from ..tools.experiment.views import HypothesisView

if TYPE_CHECKING:
    from ..tools.experiment.campaign import Campaign

AUTHOR = "mcp-client"
"""Who the ledger names as the author of an answer that came through a client."""


class Approval(BaseModel):
    approve: bool = Field(description="Yes: this change may be made. No: it is recorded as denied.")


def can_be_asked(capabilities: ClientCapabilities | None) -> bool:
    """The client declared that it can put a form before a person."""
    asking = capabilities.elicitation if capabilities else None
    return asking is not None and (asking.form is not None or asking.url is None)


def question(campaign: Campaign, thread: str, view: HypothesisView, context: Any) -> Elicit[Approval]:
    """What a person is asked. Raises `Refused` that says how to approve elsewhere when the client can't ask."""
    if not can_be_asked(context.client_capabilities):
        raise Refused(
            f"hypothesis {view.id} needs a person's yes, and this client can't ask one. A person approves with 'servewright approve {thread} {view.id}' "
            f"(or denies with 'servewright deny {thread} {view.id}'); then call again. Meanwhile go on with other hypotheses"
        )
    loss = "lossless" if view.lossless else "LOSSY: it may change the model's answers"
    text = [
        f"May Servewright make this change to {campaign.view().endpoint}?",
        view.hypothesis.title,
        f"Change: {in_words(view.hypothesis.intervention)} ({loss})",
        f"Why: {view.hypothesis.explanation[:600]}",
        *([f"Measured: {view.verdict.verdict}, {view.verdict.reason}"] if view.verdict else []),
    ]
    return Elicit("\n".join(text), Approval)


def record(campaign: Campaign, hypothesis_id: str, answer: AcceptedElicitation[Approval] | DeclinedElicitation | CancelledElicitation) -> HypothesisView:
    """Write the person's answer to the ledger. A dialogue that was dismissed is no answer."""
    if isinstance(answer, CancelledElicitation):
        raise Refused(f"the question about hypothesis {hypothesis_id} was dismissed without an answer: it still waits for a person; go on with other hypotheses")
    return campaign.approve(hypothesis_id, isinstance(answer, AcceptedElicitation) and answer.data.approve, AUTHOR)


def in_words(change: Intervention) -> str:
    """An intervention in one line."""
    parts = [f"{name}={value}" for name, value in change.set.items()] + [f"without {name}" for name in change.unset]
    parts += [f"env {name}={value}" for name, value in change.env.items()] + [f"patch {name[:19]}" for name in change.patches]
    return ", ".join(parts)
