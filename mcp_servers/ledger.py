"""Server `ledger`: the record of the project. Reads it, checks it, and notes how a lever family ended; it can't write a verdict."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from ..tools.contract.base import Contract
from ..tools.contract.endpoint import Family
from ..tools.contract.errors import BadInput
from ..tools.experiment.views import CampaignView, FamilyView, Fate
from ..tools.ledger.ledger import Entry
from ..tools.ledger.project import Project
from ..tools.ledger.summary import summarise
from .arguments import Thread
from .context import Desk
from .factory import Toolbox

INSTRUCTIONS = "The append-only record of a project: hypotheses, experiments, runs, verdicts. Entries can be read and recomputed, never changed or left out."
EntryKind = Literal[
    "campaign_opened", "series_opened", "floor", "hypothesis", "experiment", "run_reserved", "run_started", "run_finished", "run_aborted",
    "verdict", "stack", "approval", "campaign_closed", "note",
]  # fmt: skip
SHOWN_CHARACTERS = 24_000


class EntryLine(Contract):
    seq: int
    kind: str
    key: str | None
    campaign: str | None
    at: str
    """UTC, ISO 8601."""
    summary: str
    resource: str
    """Where the whole entry can be read."""


class EntryList(Contract):
    entries: tuple[EntryLine, ...]
    more: int
    """Newer matches that were left out; go on with `after` set to the last `seq` here."""


class EntryView(Contract):
    seq: int
    kind: str
    key: str | None
    at: str
    hash: str
    """SHA-256 over the entry and the hash before it."""
    body: dict[str, Any]
    cut: bool
    """True: the body was too long for an answer and only its fields that are short are here."""


class Verification(Contract):
    intact: bool
    problems: tuple[str, ...]
    """At most 20; empty when intact."""
    entries: int


def line(entry: Entry) -> EntryLine:
    return EntryLine(
        seq=entry.seq, kind=entry.kind, key=entry.key, campaign=entry.body.get("campaign"), at=entry.at, summary=summarise(entry), resource=f"ledger://entries/{entry.seq}"
    )


def show_entry(project: Project, seq: int) -> EntryView:
    """One entry, with a body that fits into an answer. Raises `BadInput` where there is none."""
    newest = project.ledger.head()[0]
    entry = next((one for one in project.ledger.entries() if one.seq == seq), None)
    if entry is None:
        raise BadInput("seq", seq, f"the number of an entry, 1 to {newest}" if newest else "an entry; the ledger is empty")
    body, cut = entry.body, False
    if len(json.dumps(body)) > SHOWN_CHARACTERS:
        body, cut = {name: value for name, value in body.items() if len(json.dumps(value)) <= SHOWN_CHARACTERS // len(body)}, True
    return EntryView(seq=entry.seq, kind=entry.kind, key=entry.key, at=entry.at, hash=entry.hash, body=body, cut=cut)


def ledger_tools(desk: Desk, prefixed: bool) -> list[Tool]:
    box = Toolbox("ledger", prefixed)

    @box.tool("Overview of the campaign", reads=True)
    def overview() -> CampaignView:
        """The campaign at a glance: baseline, every hypothesis with its state and verdict, lever families and their fates, the stack of accepted changes, budget
        spent and left. Read it first when you join, and again after each verdict. Free."""
        return desk.campaign.view()

    @box.tool("List entries", name="list", reads=True)
    def entries(
        kind: Annotated[EntryKind | None, Field(description="Only entries of this kind; leave out for all.")] = None,
        campaign: Annotated[Thread | None, Field(description="Only this investigation's; leave out for the whole project.")] = None,
        after: Annotated[int, Field(ge=0, le=2**53, description="Only entries with a larger number.")] = 0,
        limit: Annotated[int, Field(ge=1, le=50)] = 20,
    ) -> EntryList:
        """Entries of the project's record, oldest first, one line each. Read a whole one with show. Free."""
        found = [one for one in desk.existing_project().ledger.entries(*([kind] if kind else []), campaign=campaign) if one.seq > after]
        return EntryList(entries=tuple(line(one) for one in found[:limit]), more=max(0, len(found) - limit))

    @box.tool("Show an entry", reads=True)
    def show(seq: Annotated[int, Field(ge=1, le=2**53, description="Number of the entry, as list gives it.")]) -> EntryView:
        """One entry of the record in full, such as a registered experiment with its checks or a verdict with its figures. Free."""
        return show_entry(desk.existing_project(), seq)

    @box.tool("Verify the record", reads=True)
    def verify() -> Verification:
        """Check the whole record: the hash chain, every artifact's digest, and every measurement and verdict computed again from the raw rows. Takes seconds to
        minutes. Use it before you rely on somebody's result."""
        from ..tools.ledger.verify import verify as check

        project = desk.existing_project()
        found = list(check(project).problems)
        return Verification(intact=not found, problems=tuple(found[:20]), entries=project.ledger.head()[0])

    @box.tool("Note a lever family's fate")
    def family(
        family: Family,
        fate: Annotated[Fate, Field(description="tried; ruled_out (name the measurement in the reason); not_applicable; put_off (say why).")],
        reason: Annotated[str, Field(min_length=10, max_length=1000)],
    ) -> FamilyView:
        """Note how one kind of lever ended in this campaign, so that the report accounts for each. Rule a family out only by a measured figure."""
        desk.campaign.family(family, fate, reason)
        return next((view for view in desk.campaign.view().families if view.family == family), FamilyView(family=family, fate=fate, reason=reason))

    return box.tools


