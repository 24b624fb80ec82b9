"""What runs in the next step: vLLM V1 0.32's rules (`v1/core/sched/scheduler.py`), without a clock and without asynchronous scheduling's placeholders.

No phases: every request wants its known tokens computed. Running ones come first, oldest admitted first; then waiting ones in order, until the first that doesn't fit.
"""

from __future__ import annotations

import heapq
from collections import deque
from typing import Any

from .request import FINISHED, RUNNING, WAITING, Request

Step = list[tuple[Request, int]]
"""Requests of a step with the tokens computed for each; `request.computed` already counts them."""


class Scheduler:
    """`pool` is a `BlockPool` or a `RunPool`. `step = schedule()`, compute it, `finished = finish(step)`; `add` and `abort` at any time between."""

    __slots__ = ("block", "blocked", "budget", "chunked", "hits", "long_prefill", "max_len", "pool", "preemptions", "priority", "queries", "reserve", "running", "seqs", "waiting", "watermark")

    def __init__(
        self,
        pool: Any,
        *,
        block: int,
        budget: int,
        seqs: int,
        max_len: int,
        chunked: bool = True,
        priority: bool = False,
        long_prefill: int = 0,
        reserve: bool = True,
        watermark: int = 0,
    ) -> None:
        self.pool = pool
        self.block = block
        self.budget = budget
        self.seqs = seqs
        self.max_len = max_len
        self.chunked = chunked
        self.priority = priority
        self.long_prefill = long_prefill
        self.reserve = reserve  # scheduler_reserve_full_isl: admit only when the whole prompt fits
        self.watermark = watermark  # blocks
        self.running: list[Request] = []
        self.waiting: deque[Request] | list[Request] = [] if priority else deque()
        self.blocked = False  # the head of the waiting queue didn't fit at the last look
        self.preemptions = 0
        self.queries = 0  # prompt tokens looked up in the prefix cache
        self.hits = 0

    def add(self, request: Request) -> None:
        if self.priority:
            heapq.heappush(self.waiting, request)  # pyright: ignore[reportArgumentType]
        else:
            self.waiting.append(request)

    def abort(self, request: Request) -> None:
        """Take a request out, wherever it is; its blocks become free."""
        if request.state == FINISHED:
            return
        if request.state == RUNNING:
            self.running.remove(request)
            self.pool.release(request.table)
        else:
            self.waiting.remove(request)
            if self.priority:
                heapq.heapify(self.waiting)  # pyright: ignore[reportArgumentType]
        request.state = FINISHED
        self.blocked = False

    def schedule(self) -> Step:
        """Choose the next step and allocate its blocks."""
        plan: dict[Request, int] = {}
        cap = self.long_prefill if len(self.running) + len(self.waiting) > 1 else 0
        budget, preempted = self._continue(plan, self.budget, cap)
        if not preempted and self.waiting:
            self._admit(plan, budget, cap)
        for request, tokens in plan.items():
            request.computed += tokens
        return list(plan.items())

    def _continue(self, plan: dict[Request, int], budget: int, cap: int) -> tuple[int, bool]:
        """Running requests, oldest first; the youngest give way when blocks run out. Returns the budget left and whether any did."""
        running, pool, block, max_len = self.running, self.pool, self.block, self.max_len
        index, preempted = 0, False
        while index < len(running) and budget > 0:
            request = running[index]
            done = request.computed
            known = request.prompt + request.output
            tokens = known - done
            if 0 < cap < tokens:
                tokens = cap
            tokens = min(tokens, budget, max_len - done - 1)
            if tokens <= 0:
                index += 1
                continue
            table = request.table
            need = -(-(done + tokens) // block) - table.hashed - table.plain
            fits = need <= 0 or need <= pool.free
            while not fits:
                victim = self._victim()
                preempted = True
                position = running.index(victim)
                del running[position]
                if position < index:
                    index -= 1
                budget += plan.pop(victim, 0)
                self._preempt(victim)
                if victim is request:
                    return budget, True
                fits = need <= pool.free
            if need > 0:
                pool.take(table, need)
            pool.commit(table, min(done + tokens, known) // block)
            plan[request] = tokens
            budget -= tokens
            index += 1
        return budget, preempted

    def _victim(self) -> Request:
        return max(self.running, key=lambda r: (r.priority, r.arrival)) if self.priority else self.running[-1]

    def _preempt(self, request: Request) -> None:
        """All is computed again later, but what stays cached can be hit. It goes to the front of the queue."""
        self.pool.release(request.table)
        request.computed = 0
        request.preemptions += 1
        request.state = WAITING
        self.preemptions += 1
        self.blocked = False
        if isinstance(self.waiting, deque):
            self.waiting.appendleft(request)
        else:
            heapq.heappush(self.waiting, request)

    def _admit(self, plan: dict[Request, int], budget: int, cap: int) -> None:
        """Waiting requests, in order; the first that doesn't fit holds up all behind it."""
        pool, block, waiting, running = self.pool, self.block, self.waiting, self.running
        self.blocked = False
        while waiting and budget > 0 and len(running) < self.seqs:
            request = waiting[0]
            known = request.prompt + request.output
            blocks, match = pool.lookup(request.table, (known - 1) // block)
            hit = blocks * block
            tokens = known - hit
            if 0 < cap < tokens:
                tokens = cap
            if not self.chunked and tokens > budget:
                break
            tokens = min(tokens, budget)
            target = known if self.reserve else hit + tokens
            need = -(-target // block) - blocks + pool.evictable(match)
            if need + (self.watermark if running else 0) > pool.free:
                self.blocked = True
                break
            pool.hold(request.table, match)
            pool.take(request.table, -(-(hit + tokens) // block) - blocks)
            pool.commit(request.table, (hit + tokens) // block)
            if isinstance(waiting, deque):
                waiting.popleft()
            else:
                heapq.heappop(waiting)
            if request.preemptions == 0:
                request.cached = hit
                if pool.caching:
                    self.queries += known
                    self.hits += hit
            request.computed = hit
            request.state = RUNNING
            running.append(request)
            plan[request] = tokens
            budget -= tokens

    def finish(self, step: Step, now: float = 0.0) -> list[Request]:
        """Every request whose known tokens are computed gets one more, at `now`. Returns those that are complete; their blocks are free."""
        done: list[Request] = []
        for request, _ in step:
            if request.state == RUNNING and request.computed >= request.prompt + request.output:
                request.output += 1
                if request.output == 1:
                    request.first = now
                if request.output >= request.limit or request.prompt + request.output >= self.max_len:
                    done.append(request)
        if done:
            self.retire(done, now)
        return done

    def retire(self, done: list[Request], now: float) -> None:
        """Complete requests leave; their blocks become free, in the order given."""
        for request in done:
            request.state = FINISHED
            request.last = now
            self.pool.release(request.table)
        self.running = [r for r in self.running if r.state == RUNNING]
        self.blocked = False
