"""KV-cache blocks, paged and shared by prefix, as vLLM V1 0.32 keeps them (`v1/core/block_pool.py`).

Blocks are not told apart by number: only their contents matter. In vLLM's free queue the blocks without a hash always come before those with one
(they enter at the front, hashed ones at the end), so the former are a count and the latter an ordered map from key to nothing.
A block's key is its hash; when a second block holds the same contents (vLLM doesn't merge them), that one gets a key of its own.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from itertools import count, islice

_MASK = (1 << 63) - 1


class BlockTable:
    """The blocks of one request: `hashed` ones from the start, by key, then so many plain ones.

    `hashes` are those of the prompt's full blocks, chained. Equal prompts have equal answers here, so the hashes of an answer's blocks follow from `salt`.
    """

    __slots__ = ("hashed", "hashes", "keys", "plain", "salt")

    def __init__(self, hashes: Sequence[int], salt: int) -> None:
        self.hashes = list(hashes)
        self.salt = salt & _MASK
        self.keys: list[int] = []
        self.hashed = self.plain = 0

    def hash_up_to(self, blocks: int) -> None:
        """Make hashes of the first `blocks` blocks known."""
        salt = self.salt
        self.hashes += [(salt + index * 0x9E3779B97F4A7C15) & _MASK for index in range(len(self.hashes), blocks)]


class BlockPool:
    """`blocks` counts the one that vLLM holds back as its null block; `caching` is prefix caching."""

    __slots__ = ("_aliases", "_copies", "_first", "_of", "blank", "caching", "lru", "references", "usable")

    def __init__(self, blocks: int, caching: bool) -> None:
        self.usable = blocks - 1
        self.caching = caching
        self.blank = self.usable  # free, without a hash
        self.lru: OrderedDict[int, None] = OrderedDict()  # free, hashed, in the order of eviction
        self.references: dict[int, int] = {}  # key of a hashed block in use -> requests that hold it
        self._first: dict[int, int] = {}  # hash -> key of the block that a lookup finds
        self._copies: dict[int, list[int]] = {}  # hash -> keys, oldest first, where there are several
        self._of: dict[int, int] = {}  # key -> hash, where they differ
        self._aliases = count(1 << 64)

    @property
    def free(self) -> int:
        return self.blank + len(self.lru)

    @property
    def usage(self) -> float:
        """Share of the blocks in use, 0 to 1."""
        return 1.0 - self.free / self.usable if self.usable else 0.0

    def lookup(self, table: BlockTable, limit: int) -> tuple[int, list[int]]:
        """Blocks of the longest cached prefix, at most `limit`, and their keys."""
        found: list[int] = []
        first = self._first.get
        for block_hash in islice(table.hashes, limit if self.caching else 0):
            key = first(block_hash)
            if key is None:
                break
            found.append(key)
        return len(found), found

    def evictable(self, keys: list[int]) -> int:
        """How many of these cached blocks are free, so that holding them takes from the free ones."""
        return sum(map(self.lru.__contains__, keys))

    def hold(self, table: BlockTable, keys: list[int]) -> None:
        """Give a request without blocks its cached prefix."""
        references, lru = self.references, self.lru
        for key in keys:
            held = references.get(key)
            if held is None:
                del lru[key]
                references[key] = 1
            else:
                references[key] = held + 1
        table.keys = keys
        table.hashed = len(keys)

    def take(self, table: BlockTable, number: int) -> None:
        """Give `number` (at most `free`) fresh blocks; cached ones are evicted, least recently used first."""
        table.plain += number
        if number <= self.blank:
            self.blank -= number
            return
        number -= self.blank
        self.blank = 0
        pop, first = self.lru.popitem, self._first
        for _ in range(number):
            key = pop(last=False)[0]
            if first.get(key) == key and key not in self._copies:
                del first[key]
            else:
                self._forget(key)

    def _forget(self, key: int) -> None:
        block_hash = self._of.pop(key, key)
        copies = self._copies.get(block_hash)
        if copies is None:
            del self._first[block_hash]
            return
        copies.remove(key)
        self._first[block_hash] = copies[0]
        if len(copies) == 1:
            del self._copies[block_hash]

    def commit(self, table: BlockTable, full: int) -> None:
        """The first `full` blocks of the request are full (or will be after this step): later requests may hit them."""
        start = table.hashed
        if full <= start or not self.caching:
            return
        if full > len(table.hashes):
            table.hash_up_to(full)
        first, references = self._first, self.references
        new = table.hashes[start:full]
        table.plain -= len(new)
        table.hashed = full
        if first.keys().isdisjoint(new):
            first.update(zip(new, new, strict=True))
            references.update(dict.fromkeys(new, 1))
            table.keys += new
            return
        for block_hash in new:
            key = block_hash
            known = first.get(block_hash)
            if known is None:
                first[block_hash] = key
            else:
                key = next(self._aliases)
                self._of[key] = block_hash
                self._copies.setdefault(block_hash, [known]).append(key)
            references[key] = 1
            table.keys.append(key)

    def release(self, table: BlockTable) -> None:
        """Take a request's blocks back, its tail first, so that the tail is evicted first."""
        references, lru = self.references, self.lru
        self.blank += table.plain
        for key in reversed(table.keys):
            held = references[key]
            if held == 1:
                del references[key]
                lru[key] = None
            else:
                references[key] = held - 1
        table.keys = []
        table.hashed = table.plain = 0

    def reset(self) -> bool:
        """Forget all cached contents. As in vLLM, not while any block is in use."""
        if self.free != self.usable:
            return False
        self.blank = self.usable
        for part in (self.lru, self._first, self._copies, self._of):
            part.clear()
        return True
