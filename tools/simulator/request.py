"""One request inside the scheduler."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from .blocks import BlockTable
from .runs import RunTable

WAITING, RUNNING, FINISHED = 0, 1, 2
_MASK = (1 << 63) - 1


class Request:
    """`contents`: the table of its blocks, or the hashes of the prompt's full blocks. Token counts, not token values, steer the scheduler."""

    __slots__ = ("arrival", "cached", "computed", "first", "last", "limit", "number", "output", "preemptions", "priority", "prompt", "state", "table")

    def __init__(self, number: int, prompt: int, limit: int, contents: Sequence[int] | RunTable, *, arrival: float = 0.0, priority: int = 0, salt: int | None = None) -> None:
        self.number = number
        self.prompt = prompt
        self.limit = limit  # answer tokens at most
        self.arrival = arrival
        self.priority = priority
        self.output = 0
        self.computed = 0
        self.cached = -1  # prompt tokens found cached at first admission; -1 before it
        self.preemptions = 0
        self.state = WAITING
        if isinstance(contents, RunTable):
            self.table: Any = contents
        else:
            self.table = BlockTable(contents, salt_of(contents, prompt) if salt is None else salt)
        self.first = -1.0  # when the first answer token was due, set by whoever keeps the time
        self.last = -1.0

    def __lt__(self, other: Request) -> bool:
        return (self.priority, self.arrival, self.number) < (other.priority, other.arrival, other.number)


def salt_of(hashes: Sequence[int], prompt: int) -> int:
    """The same for prompts whose full blocks and length are the same."""
    return hash((hashes[-1] if hashes else 0, prompt))


def block_hashes(tokens: Sequence[int], block_size: int, seed: int = 0) -> list[int]:
    """Chained hashes of the full blocks of a prompt: equal exactly where the whole prefix is equal (within this process)."""
    raw = tokens if isinstance(tokens, bytes) else array("I", tokens).tobytes()
    width, hashes, parent = 4 * block_size, [], seed
    for end in range(width, len(raw) + 1, width):
        parent = hash((parent, raw[end - width : end])) & _MASK
        hashes.append(parent)
    return hashes
