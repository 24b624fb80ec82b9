"""How figures and other people's text are written in a report."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from ..contract.hypothesis import Intervention, Prediction
from ..contract.verdict import Verdict


def percent(fraction: float) -> str:
    """0.123 -> +12.3%."""
    return f"{fraction:+.1%}"


def effect(verdict: Verdict) -> str:
    """The effect with its interval and level."""
    if verdict.effect is None:
        return "not measured"
    bound = " (a bound: a capacity lies outside the ladder)" if verdict.censored else ""
    return f"{percent(verdict.effect)}{interval(verdict)}{bound}"


def interval(verdict: Verdict) -> str:
    if verdict.interval is None:
        return ""
    return f" [{percent(verdict.interval[0])}, {percent(verdict.interval[1])}] at level {1 - 2 * verdict.alpha:.4g}"


def change(intervention: Intervention) -> str:
    parts = [f"`{name}={json.dumps(value)}`" for name, value in intervention.set.items()]
    parts += [f"`{name}` taken away" for name in intervention.unset]
    parts += [f"`{name}={value}` in the environment" for name, value in intervention.env.items()]
    parts += [f"patch `{patch[:19]}`" for patch in intervention.patches]
    return ", ".join(parts)


def prediction(expected: Prediction) -> str:
    return f"{expected.observable} {expected.direction}, {percent(expected.low)} to {percent(expected.high)}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; cells are made safe, so that text of models or traces can't leave its cell."""
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(cell(text) for text in row)} |" for row in rows]
    return "\n".join(lines)


def cell(text: str) -> str:
    """One line, no column borders, no HTML."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", " ".join(text.split()).replace("|", "\\|"))
