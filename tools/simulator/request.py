"""One request inside the scheduler."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from .blocks import BlockTable

WAITING, RUNNING, FINISHED = 0, 1, 2
_MASK = (1 << 63) - 1


class Request:
    """`hashes` are those of the prompt's full blocks; those of the answer's are appended as they fill. Token counts, not token values, steer the scheduler."""

    __slots__ = ("arrival", "cached", "computed", "first", "hashes", "last", "limit", "number", "output", "preemptions", "priority", "prompt", "salt", "state", "table")

    def __init__(self, number: int, prompt: int, limit: int, hashes: Sequence[int], *, arrival: float = 0.0, priority: int = 0, salt: int | None = None) -> None:
        self.number = number
        self.prompt = prompt
        self.limit = limit  # answer tokens at most
        self.hashes = list(hashes)
        self.arrival = arrival
        self.priority = priority
        self.salt = (hash((hashes[-1] if hashes else 0, prompt)) if salt is None else salt) & _MASK
        self.output = 0
        self.computed = 0
        self.cached = -1  # prompt tokens found cached at first admission; -1 before it
        self.preemptions = 0
        self.state = WAITING
        self.table = BlockTable()
        self.first = -1.0  # when the first answer token was due, set by whoever keeps the time
        self.last = -1.0

    def __lt__(self, other: Request) -> bool:
        return (self.priority, self.arrival, self.number) < (other.priority, other.arrival, other.number)

    def hash_up_to(self, blocks: int) -> None:
        """Make hashes of the first `blocks` blocks known. Equal prompts have equal answers here, so an answer's blocks follow from the prompt."""
        hashes, salt = self.hashes, self.salt
        for index in range(len(hashes), blocks):
            hashes.append((salt + index * 0x9E3779B97F4A7C15) & _MASK)


def block_hashes(tokens: Sequence[int], block_size: int, seed: int = 0) -> list[int]:
    """Chained hashes of the full blocks of a prompt: equal exactly where the whole prefix is equal (within this process)."""
    raw = tokens if isinstance(tokens, bytes) else array("I", tokens).tobytes()
    width, hashes, parent = 4 * block_size, [], seed
    for end in range(width, len(raw) + 1, width):
        parent = hash((parent, raw[end - width : end])) & _MASK
        hashes.append(parent)
    return hashes
