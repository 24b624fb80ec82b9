"""From a rule's idea to a hypothesis: values chosen with the simulator, checks that can fail, and words with figures in them."""

from __future__ import annotations

from collections.abc import Sequence

from ...tools.contract.endpoint import Family
from ...tools.contract.hypothesis import Check, Hypothesis, Intervention, Prediction
from ...tools.experiment.views import SimulatedEffect
from ..state import Settled
from .facts import Change, Facts

Answer = Hypothesis | Settled
CLOSE = 0.02
"""Of two changes whose predicted effects are this close (fraction of capacity), the simpler one is taken: the first of the list."""
WORSE = 1.10
"""Ratio of a latency to the baseline's, at the same load, that refutes a change made to shorten it."""


def settled(family: Family, fate: str, reason: str) -> Settled:
    return Settled.model_validate({"family": family, "fate": fate, "reason": reason})


def choose(facts: Facts, changes: Sequence[Change]) -> tuple[Change, SimulatedEffect | None, str]:
    """The change to propose, its predicted effect (None where nothing could be simulated) and that in words. `changes` go from simple to far-reaching."""
    fresh = [change for change in changes if not facts.tried(change)] or list(changes)
    outcomes = facts.effects(fresh)
    predicted = [(change, effect) for change, effect in zip(fresh, outcomes, strict=True) if isinstance(effect, SimulatedEffect)]
    if not predicted:
        return fresh[min(1, len(fresh) - 1)], None, f"The simulator could not be asked ({str(outcomes[0])[:120]}), so the value is a rule of thumb."
    top = max(effect.effect for _, effect in predicted)
    change, effect = next((c, e) for c, e in predicted if e.effect >= top - CLOSE * (1 + top))
    compared = ", ".join(f"{words(c)}: {e.effect:+.0%}" for c, e in predicted)
    return change, effect, f"Predicted by the simulator, not evidence: {compared}."


def interval(effect: SimulatedEffect | None, usual: tuple[float, float]) -> Prediction:
    """Half to one and a half times what the simulator says: its cost model is no better than that on hardware it was not fitted to."""
    if effect is None or effect.effect <= 0:
        return Prediction(low=usual[0], high=usual[1])
    return Prediction(low=round(0.5 * effect.effect, 4), high=round(1.5 * effect.effect + 0.05, 4))


def draft(
    family: Family, rule: str, change: Change, *, title: str, why: str, prediction: Prediction, falsifiers: Sequence[Check], proof: Sequence[Check] = ()
) -> Hypothesis:
    """Adds the checks that every change has: no gain at the median refutes, and the running server must report the new value."""
    reported = [Check(observable=f"config.{name}", op="==", value=value) for name, value in change.items()]
    return Hypothesis(
        family=family,
        title=title[:120],
        explanation=why[:4000],
        intervention=Intervention(set=change),
        prediction=prediction,
        falsifiers=(Check(observable="capacity_rps_per_gpu", arm="ratio", op="<", value=1.0), *falsifiers),
        activation=(*reported, *proof),
        proposer=f"playbook:{rule}",
    )


def too_small(family: Family, facts: Facts, effect: SimulatedEffect | None, found: str) -> Settled | None:
    """The reason to leave it when even the simulator sees less than could be detected."""
    if effect is None or effect.effect >= facts.worth:
        return None
    most = f"{effect.effect:+.1%} at most" if effect.effect > 0 else "no gain"
    return settled(
        family,
        "put_off",
        f"{found} Of the changes at hand the simulator predicts {most}; below {facts.worth:.1%} the budget could not detect it or it isn't worth having.",
    )


def words(change: Change) -> str:
    return ", ".join(f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in change.items())


def figure(value: float | None, unit: str = "", scale: float = 1.0) -> str:
    return "not measured" if value is None else f"{value * scale:.{4 if value * scale >= 1000 else 3}g}{unit}"
