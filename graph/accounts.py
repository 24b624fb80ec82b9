"""How each lever family ends: tried, ruled out by a measurement, not applicable, or put off with a reason."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from ..tools.contract.endpoint import Family
from ..tools.contract.verdict import VerdictName
from ..tools.experiment.views import CampaignView, HypothesisView
from .state import Settled, State

FAMILIES: tuple[Family, ...] = get_args(Family)

UNJUDGED: tuple[VerdictName, ...] = ("invalid", "untestable")
"""Verdicts that say nothing of the idea: a family with no others was not tried."""


def close_accounts(view: CampaignView, state: State) -> list[Settled]:
    """The fate of every family, from what was measured, then from what was found, then from what was left."""
    return [_fate(family, view, state) for family in FAMILIES]


def _fate(family: Family, view: CampaignView, state: State) -> Settled:
    own = [h for h in view.hypotheses if h.hypothesis.family == family and h.hypothesis.proposer != "search"]
    judged = [h for h in own if h.verdict is not None]
    if judged:
        fate = "tried" if any(h.verdict is not None and h.verdict.verdict not in UNJUDGED for h in judged) else "put_off"
        return Settled(family=family, fate=fate, reason="; ".join(_line(h) for h in judged)[:600])
    if own:
        return Settled(family=family, fate="put_off", reason=f"{own[0].hypothesis.title}: {_untried(own[0], state)}"[:600])
    if family in state.settled:
        return state.settled[family]
    spent = "the budget was spent before it was looked at" if view.budget.spent else "nobody looked at it"
    return Settled(family=family, fate="put_off", reason=spent)


def _line(h: HypothesisView) -> str:
    effect = f" ({h.verdict.effect:+.1%})" if h.verdict and h.verdict.effect is not None else ""
    return f"{h.hypothesis.title}: {h.verdict.verdict if h.verdict else ''}{effect}"


def _untried(h: HypothesisView, state: State) -> str:
    why = {"needs_approval": "waits for a person's yes", "denied": h.note or "denied by the permissions or by a person"}
    return state.skipped.get(h.id) or why.get(h.state) or "not tried: the budget did not reach it"


def untouched(view: CampaignView, state: State) -> list[Family]:
    """Families that nobody has looked at yet."""
    proposed = [h.hypothesis.family for h in view.hypotheses if h.hypothesis.proposer != "search"]
    seen = [*proposed, *state.settled, *(handed.family for handed in state.handed)]
    return [family for family in FAMILIES if family not in seen]


def last_words(settled: Iterable[Settled], known: dict[Family, Settled]) -> dict[Family, Settled]:
    """`known` with the newer ones on top."""
    newer: dict[Family, Settled] = {one.family: one for one in settled}
    return {**known, **newer}
