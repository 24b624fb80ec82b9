"""The playbook's table: lever family -> rule."""

from __future__ import annotations

from collections.abc import Callable

from ...tools.contract.endpoint import Family
from ...tools.contract.hypothesis import Hypothesis
from ..state import Finding
from .draft import Answer, settled
from .facts import Facts
from .memory import memory
from .others import kernels, parallelism, quantisation, source, speculative
from .prefixes import prefix_caching
from .scheduling import scheduling

RULES: dict[Family, Callable[[Facts], list[Answer]]] = {
    "scheduling": scheduling,
    "memory": memory,
    "prefix_caching": prefix_caching,
    "speculative": speculative,
    "parallelism": parallelism,
    "quantisation": quantisation,
    "kernels": kernels,
    "source": source,
}
PROPOSING: tuple[Family, ...] = ("scheduling", "prefix_caching", "memory")
"""Families whose rules may propose something: these get an investigator, the others their reason at once."""
MOST = 2
SPARE = 1.5
"""What is tested for over what is detectable now: each later hypothesis has a smaller alpha, and so needs a larger effect."""


def investigate(family: Family, facts: Facts) -> Finding:
    """What the rules of a family make of the facts. Raises `NeedsSimulation` while a prediction is missing."""
    answers = RULES[family](facts)
    hypotheses = [a for a in answers if isinstance(a, Hypothesis) and not facts.tried(a.intervention.set)]
    if hypotheses:
        return Finding(hypotheses=[testable(h, facts) for h in sorted(hypotheses, key=lambda h: -h.prediction.high)[:MOST]])
    reasons = [a for a in answers if not isinstance(a, Hypothesis)]
    if not reasons:
        return Finding(nothing=settled(family, "ruled_out", "what its rules would propose has been tried in this campaign and has its verdict."))
    fate = "put_off" if any(r.fate == "put_off" for r in reasons) else reasons[0].fate
    return Finding(nothing=settled(family, fate, " ".join(r.reason for r in reasons)[:600]))


def testable(hypothesis: Hypothesis, facts: Facts) -> Hypothesis:
    """Where the noise hides a gain of the endpoint's minimum effect, but not the one predicted, the larger one is what is tested for."""
    needed = SPARE * facts.baseline.minimum_detectable_effect
    if needed <= facts.least or hypothesis.prediction.low < needed:
        return hypothesis
    return hypothesis.model_copy(update={"minimum_effect": round(max(needed, facts.least), 4)})
