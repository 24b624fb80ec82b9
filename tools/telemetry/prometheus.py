"""The Prometheus text format (https://prometheus.io/docs/instrumenting/exposition_formats/), as far as engines use it."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from ..contract.errors import BadInput


class Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


_LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPE = re.compile(r"\\(.)")


def parse(text: str, only: tuple[str, ...] = ()) -> list[Sample]:
    """All samples, or those whose names start with one of `only` (a vLLM page has 500 lines, most of them histogram buckets).

    Raises `BadInput` for what isn't in the format.
    """
    samples: list[Sample] = []
    for line in text.split("\n"):  # not splitlines(): a label may hold other separators
        if not line or line.startswith("#") or line.isspace() or (only and not line.startswith(only)):
            continue
        match = _LINE.match(line)
        if match is None:
            raise BadInput("metrics", line, "a line in Prometheus' text format")
        samples.append(Sample(match[1], _labels(match[2] or "", line), _number(match[3], line)))
    return samples


def _labels(text: str, line: str) -> dict[str, str]:
    labels, position = {}, 0
    while position < len(text):
        match = _LABEL.match(text, position)
        if match is None:
            raise BadInput("metrics", line, "labels as name=\"value\", ...")
        labels[match[1]] = _ESCAPE.sub(lambda escaped: "\n" if escaped[1] == "n" else escaped[1], match[2])
        position = match.end()
    return labels


def _number(text: str, line: str) -> float:
    try:
        return {"+Inf": math.inf, "-Inf": -math.inf, "NaN": math.nan}.get(text) or float(text)
    except ValueError:
        raise BadInput("metrics", line, "a number as the sample's value") from None
