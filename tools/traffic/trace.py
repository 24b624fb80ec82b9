"""A trace in memory: when requests came, how long they were, what they shared, and, where known, what they said."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..contract.errors import BadInput
from .lines import json_lines

Format = Literal["auto", "mooncake", "native"]


@dataclass(frozen=True)
class Trace:
    """Columns of equal length n, in order of arrival.

    `blocks[i]`: ids of request i's prompt blocks of `block_tokens` tokens, first to last; equal ids are equal blocks with equal predecessors.
    `bodies[i]`: the request as logged; then `blocks` is None. Lengths are -1 where the log doesn't tell.
    """

    source: Path
    format: Literal["mooncake", "native"]
    at_s: NDArray[np.float64]
    prompt_tokens: NDArray[np.int32]
    output_tokens: NDArray[np.int32]
    cached_tokens: NDArray[np.int32]
    block_tokens: int | None
    blocks: list[NDArray[np.int64]] | None
    paths: list[str]
    bodies: list[dict[str, Any]] | None
    sessions: list[str | None]

    @property
    def requests(self) -> int:
        return len(self.at_s)


def read_trace(path: Path, format: Format = "auto") -> Trace:
    """Read a trace file. `auto` looks at the first row. Raises `BadInput` naming file, line, field and what would be right."""
    from . import mooncake, native

    if not path.is_file():
        raise BadInput("trace", str(path), "an existing trace file")
    if format == "auto":
        first = next(iter(json_lines(path)), None)
        if first is None:
            raise BadInput("trace", str(path), "a trace with at least one request (the file is empty)")
        if {"timestamp", "input_length", "hash_ids", "block_tokens"} & first.value.keys():
            format = "mooncake"
        elif {"at", "body"} & first.value.keys():
            format = "native"
        else:
            first.refuse("row", sorted(first.value)[:6], "Mooncake rows (timestamp, input_length, output_length, hash_ids) or native rows (at, path, body)")
    return mooncake.read(path) if format == "mooncake" else native.read(path)
