"""The block pool of `blocks.py`, run by run instead of block by block: the same answers, at a cost that doesn't grow with the length of prompts.

An extent is a part of one run in the cache, [low, high) in blocks, whose blocks have always been held and freed together. Free extents form the queue of
eviction; blocks leave an extent from its end, as vLLM frees a request's blocks tail first.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .library import Library, Run


class Extent:
    """`found`: a lookup finds it; otherwise another extent with the same contents is found first. `rest`: what was split off its end."""

    __slots__ = ("after", "before", "found", "high", "holders", "low", "rest", "shelf")

    def __init__(self, shelf: Shelf, low: int, high: int, holders: int, found: bool) -> None:
        self.shelf, self.low, self.high, self.holders, self.found = shelf, low, high, holders, found
        self.rest: Extent | None = None
        self.before: Any = None
        self.after: Any = None


class Shelf:
    """What is cached of one run: the extents a lookup finds, in order of place, and copies of the same contents, oldest first."""

    __slots__ = ("copies", "found", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.found: list[Extent] = []
        self.copies: list[Extent] = []


class RunTable:
    """The blocks of one request: (extent, end in it when it was taken) in order, so many of them hashed, then so many plain ones."""

    __slots__ = ("hashed", "held", "place", "plain", "shelves", "start")

    def __init__(self, shelves: list[Shelf]) -> None:
        self.shelves = shelves
        self.held: list[tuple[Extent, int]] = []
        self.hashed = self.plain = 0
        self.place = self.start = 0  # index of the shelf that the next hashed block belongs on, and that shelf's first block in the request


class RunPool:
    """As `BlockPool`, for the prompts of one library."""

    __slots__ = ("_answers", "_cached", "_head", "_shelves", "_tail", "blank", "caching", "library", "usable")

    def __init__(self, blocks: int, caching: bool, library: Library) -> None:
        self.usable = self.blank = blocks - 1
        self.caching, self.library = caching, library
        nowhere = Shelf(0)
        self._head, self._tail = Extent(nowhere, 0, 0, 0, False), Extent(nowhere, 0, 0, 0, False)
        self._reset_cache()

    def _reset_cache(self) -> None:
        self._cached = 0  # free blocks with a hash
        self._shelves: dict[int, Shelf] = {}
        self._answers: dict[int, Shelf] = {}
        self._head.after, self._tail.before = self._tail, self._head

    @property
    def free(self) -> int:
        return self.blank + self._cached

    @property
    def usage(self) -> float:
        return 1.0 - self.free / self.usable if self.usable else 0.0

    def table(self, path: list[Run], salt: int) -> RunTable:
        """For a request whose prompt goes along `path`; requests with equal prompts have equal `salt`s and share their answers' blocks."""
        shelves = [self._shelves.get(run.number) or self._shelves.setdefault(run.number, Shelf(run.size)) for run in path]
        shelves.append(self._answers.get(salt) or self._answers.setdefault(salt, Shelf(1 << 60)))
        return RunTable(shelves)

    def lookup(self, table: RunTable, limit: int) -> tuple[int, list[tuple[Extent, int]]]:
        """Blocks of the longest cached prefix, at most `limit`, and the extents that hold them with where they end."""
        blocks, match = 0, []
        if self.caching:
            for shelf in table.shelves:
                place = 0
                for extent in shelf.found:
                    if extent.low != place or blocks == limit:
                        break
                    end = min(extent.high, place + limit - blocks)
                    match.append((extent, end))
                    blocks += end - place
                    place = end
                if place < shelf.size:
                    break
        return blocks, match

    def evictable(self, match: list[tuple[Extent, int]]) -> int:
        return sum(end - extent.low for extent, end in match if not extent.holders)

    def hold(self, table: RunTable, match: list[tuple[Extent, int]]) -> None:
        for extent, end in match:
            if end < extent.high:
                self._split(extent, end)
            if not extent.holders:
                self._unlink(extent)
                self._cached -= end - extent.low
            extent.holders += 1
            table.held.append((extent, end))
            self._step(table, end - extent.low)

    @staticmethod
    def _step(table: RunTable, blocks: int) -> None:
        """Count blocks of the current shelf as hashed."""
        table.hashed += blocks
        size = table.shelves[table.place].size
        if table.hashed - table.start == size:
            table.start += size
            table.place += 1

    def take(self, table: RunTable, number: int) -> None:
        table.plain += number
        if number <= self.blank:
            self.blank -= number
            return
        number -= self.blank
        self.blank = 0
        self._cached -= number
        while number:
            extent: Extent = self._head.after
            gone = min(number, extent.high - extent.low)
            number -= gone
            extent.high -= gone
            shelf = extent.shelf
            if extent.high == extent.low:
                self._unlink(extent)
                (shelf.found if extent.found else shelf.copies).remove(extent)
            if extent.found and shelf.copies:
                self._promote(shelf, extent.high, extent.high + gone)

    def _promote(self, shelf: Shelf, low: int, high: int) -> None:
        """The oldest copies of [low, high) are what lookups find from now on."""
        for copy in shelf.copies if low < high else ():
            start, end = max(low, copy.low), min(high, copy.high)
            if start < end:
                part = copy if copy.low == start else self._split(copy, start)
                if part.high > end:
                    self._split(part, end)
                shelf.copies.remove(part)
                part.found = True
                _insert(shelf.found, part)
                self._promote(shelf, low, start)
                self._promote(shelf, end, high)
                return

    def commit(self, table: RunTable, full: int) -> None:
        if not self.caching:
            return
        while (missing := full - table.hashed) > 0:
            shelf, low = table.shelves[table.place], table.hashed - table.start
            high = min(shelf.size, low + missing)
            self._shelve(table, shelf, low, high)
            table.plain -= high - low
            self._step(table, high - low)

    def _shelve(self, table: RunTable, shelf: Shelf, low: int, high: int) -> None:
        found, held = shelf.found, table.held
        if not found or found[-1].high <= low:
            if held and found and held[-1] == (found[-1], low) and found[-1].high == low and found[-1].holders == 1:
                found[-1].high = high
                held[-1] = (found[-1], high)
                return
            extent = Extent(shelf, low, high, 1, True)
            found.append(extent)
            held.append((extent, high))
            return
        for known in [extent for extent in found if extent.low < high and extent.high > low]:
            if low < known.low:
                self._place(table, shelf, low, known.low, True)
            low, end = max(low, known.low), min(high, known.high)
            self._place(table, shelf, low, end, False)
            low = end
        if low < high:
            self._place(table, shelf, low, high, True)

    @staticmethod
    def _place(table: RunTable, shelf: Shelf, low: int, high: int, found: bool) -> None:
        extent = Extent(shelf, low, high, 1, found)
        if found:
            _insert(shelf.found, extent)
        else:
            shelf.copies.append(extent)
        table.held.append((extent, high))

    def release(self, table: RunTable) -> None:
        self.blank += table.plain
        for extent, end in reversed(table.held):
            parts = [extent]
            while parts[-1].high < end:
                parts.append(parts[-1].rest)  # pyright: ignore[reportArgumentType]
            for part in reversed(parts):
                part.holders -= 1
                if not part.holders:
                    self._cached += part.high - part.low
                    self._append(part)
        table.held = []
        table.hashed = table.plain = table.place = table.start = 0

    def reset(self) -> bool:
        if self.free != self.usable:
            return False
        self.blank = self.usable
        self._reset_cache()
        return True

    def _split(self, extent: Extent, cut: int) -> Extent:
        """Make an extent end at `cut`; returns the rest of it, as a new one that is evicted first and held by the same."""
        rest = Extent(extent.shelf, cut, extent.high, extent.holders, extent.found)
        rest.rest, extent.rest, extent.high = extent.rest, rest, cut
        group = extent.shelf.found if extent.found else extent.shelf.copies
        group.insert(group.index(extent) + 1, rest)
        if not extent.holders:
            rest.before, rest.after = extent.before, extent
            extent.before.after = rest
            extent.before = rest
        return rest

    @staticmethod
    def _unlink(extent: Extent) -> None:
        extent.before.after, extent.after.before = extent.after, extent.before

    def _append(self, extent: Extent) -> None:
        """To the end of the queue; one piece with the extent before it where that is what follows it in the run."""
        last: Extent = self._tail.before
        if last.shelf is extent.shelf and last.found and extent.found and last.low == extent.high:
            extent.high = last.high
            extent.shelf.found.remove(last)
            self._unlink(last)
            last = self._tail.before
        extent.before, extent.after = last, self._tail
        last.after = self._tail.before = extent


def _insert(found: list[Extent], extent: Extent) -> None:
    found.insert(bisect_left(found, extent.low, key=lambda other: other.low), extent)
