"""All prompts of a workload as one tree of runs: blocks that always occur together, so that a cache can keep account of them together."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from operator import eq

from .load import Prompt


class Run:
    """`size` blocks in a row that no prompt of the workload ends or branches within; `number` is its place in the library."""

    __slots__ = ("children", "hashes", "number", "size", "start")

    def __init__(self, hashes: list[int], start: int, size: int) -> None:
        self.hashes, self.start, self.size = hashes, start, size
        self.children: dict[int, Run] = {}
        self.number = -1

    def shared(self, hashes: list[int], at: int) -> int:
        """How many blocks of the run the prompt `hashes` goes along, from its block `at` on. Hashes are chained: where two agree, all before them do."""
        most = min(self.size, len(hashes) - at)
        if self.hashes[self.start + most - 1] == hashes[at + most - 1]:
            return most
        return bisect_left(range(1, most), True, key=lambda length: not eq(self.hashes[self.start + length - 1], hashes[at + length - 1])) if most > 1 else 0


class Library:
    """Frozen once made. `block` in tokens; the prompts' hashes must be chained. Paths are given by prompt, as lists of runs."""

    def __init__(self, prompts: Iterable[Prompt], block: int) -> None:
        self.block = block
        self._root = Run([], 0, 0)
        self._paths: dict[int, list[Run]] = {}
        self._prompts = list({id(prompt): prompt for prompt in prompts}.values())
        for prompt in self._prompts:
            self._insert(prompt.hashes(block))
        self.runs: list[Run] = []
        for prompt in self._prompts:
            self._paths[id(prompt)] = self._walk(prompt.hashes(block))

    def path(self, prompt: Prompt) -> list[Run]:
        """Raises KeyError for a prompt that isn't in the library."""
        return self._paths[id(prompt)]

    def _insert(self, hashes: list[int]) -> None:
        above, at = self._root, 0
        while at < len(hashes):
            run = above.children.get(hashes[at])
            if run is None:
                above.children[hashes[at]] = Run(hashes, at, len(hashes) - at)
                return
            shared = run.shared(hashes, at)
            if shared < run.size:
                head = Run(run.hashes, run.start, shared)
                above.children[hashes[at]] = head
                run.start += shared
                run.size -= shared
                head.children[run.hashes[run.start]] = run
                run = head
            above, at = run, at + shared

    def _walk(self, hashes: list[int]) -> list[Run]:
        path, above, at = [], self._root, 0
        while at < len(hashes):
            above = above.children[hashes[at]]
            if above.number < 0:
                above.number = len(self.runs)
                self.runs.append(above)
            path.append(above)
            at += above.size
        return path
