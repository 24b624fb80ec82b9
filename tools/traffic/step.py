"""One step of the ladder: every request leaves at its time, however slow the server."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
from collections.abc import Callable, Sequence
from time import perf_counter

from .alarm import Alarm
from .answer import Answer
from .pool import Pool

BATCH_S, DENSE_BATCH_S, DENSE = 0.0002, 0.001, 800.0
"""Shortest wall time between two wake-ups; requests due in between leave together, this much late at most. Above 800 requests a wall second it is longer:
a wake-up for each would cost the client a third of its processor time, and the lateness that it saves is smaller than what reading the answers causes."""
GONE_S, GONE_REFUSALS = 1.0, 3
"""The server is gone when connects have been refused for this long (wall), this many in a row, with nothing under way."""
LEAD_S = 0.02
TICK_S = 0.05


class Step:
    """Plays a schedule once. `offsets` are wall seconds from the start, ascending; `wire(i)` gives the bytes of request i."""

    def __init__(
        self,
        pool: Pool,
        offsets: Sequence[float],
        wire: Callable[[int], bytes],
        *,
        drain_s: float,
        timeout_s: float | None = None,
        keeps_sla: Callable[[Answer], bool] = lambda answer: answer.status == "ok",
        tick: Callable[[Step], None] = lambda step: None,
    ) -> None:
        self._pool, self._offsets, self._wire = pool, offsets, wire
        self._drain_s, self._timeout_s = drain_s, timeout_s
        self._keeps_sla, self._tick = keeps_sla, tick
        self.answers: list[Answer] = []
        self.start = 0.0
        self.sent = self.ended = self.ok = self.within = 0
        self.latest = 0.0
        """Worst lateness so far, wall seconds."""
        self.unfinished = 0
        """Requests that were still open when the drain ended."""
        self.gone = self.cancelled = False
        self.cpu_share = 0.0
        """Processor seconds a wall second while requests left."""
        self._idle = asyncio.Event()
        span = offsets[-1] - offsets[0]
        self._batch_s = DENSE_BATCH_S if span > 0 and len(offsets) / span > DENSE else BATCH_S
        self._first_open = 0

    async def run(self) -> list[Answer]:
        """Send all, wait for the answers until the drain ends, and return every request's record: each has a status."""
        self._pool.on_end = self._ended
        gc.collect()
        gc.freeze()
        gc.disable()
        try:
            await self._play()
        finally:
            gc.enable()
            gc.unfreeze()
        return self.answers

    def cancel(self) -> None:
        """Stop sending and waiting; what is open is closed."""
        self.cancelled = True
        self._idle.set()

    async def _play(self) -> None:
        self._cpu, self._began = _cpu_s(), perf_counter()
        self.start = self._began + LEAD_S
        self.answers = [Answer(self.start + offset) for offset in self._offsets]
        self._alarm = Alarm(self._fire)
        try:
            self._alarm.at(self.start)
            end = self.answers[-1].due + self._drain_s
            while not (self.cancelled or self.gone or self.ended == len(self.answers)):
                left = end - perf_counter()
                if left <= 0:
                    break
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._idle.wait(), min(left, TICK_S))
                self._sweep()
                self._tick(self)
        finally:
            self._alarm.close()
            self._close_open()

    def _fire(self) -> None:
        """Send everything that is due."""
        answers, wire, send = self.answers, self._wire, self._pool.send
        index, count = self.sent, len(answers)
        now = perf_counter()
        while index < count and not self.cancelled:
            answer = answers[index]
            if answer.due > now:
                now = perf_counter()
                if answer.due > now:
                    break
            self.sent = index + 1
            self.latest = max(self.latest, now - answer.due)
            send(answer, wire(index), now)
            index += 1
            now = perf_counter()
        if index < count:
            due = answers[index].due
            soonest = perf_counter() + self._batch_s
            self._alarm.at(due if due > soonest else soonest)
        else:
            self.cpu_share = (_cpu_s() - self._cpu) / max(perf_counter() - self._began, 1e-9)

    def _ended(self, answer: Answer) -> None:
        self.ended += 1
        if answer.status == "ok":
            self.ok += 1
            if self._keeps_sla(answer):
                self.within += 1
        if self.ended == len(self.answers):
            self._idle.set()

    def _sweep(self) -> None:
        """Time out what took too long, and see whether the server is still there."""
        now = perf_counter()
        if self._timeout_s is not None:
            late = {id(answer) for answer in self._overdue(now - self._timeout_s)}
            for connection in [c for c in self._pool.active if id(c.answer) in late]:
                connection.abandon("timeout", "the request's own limit")
        since = self._pool.refused_since
        self.gone = since is not None and self._pool.refused >= GONE_REFUSALS and now - since >= GONE_S and not self._pool.streaming()

    def _overdue(self, before: float) -> list[Answer]:
        """Requests due before the time given that are still open. Looks only past those that have all ended."""
        answers = self.answers
        while self._first_open < self.sent and answers[self._first_open].status is not None:
            self._first_open += 1
        overdue = []
        for index in range(self._first_open, self.sent):
            if answers[index].due >= before:
                break
            if answers[index].status is None:
                overdue.append(answers[index])
        return overdue

    def _close_open(self) -> None:
        """Give every request that has no end one."""
        reason = "cancelled" if self.cancelled else "the server is gone" if self.gone else "still open at the end of the drain"
        for connection in list(self._pool.active):
            self.unfinished += 1
            connection.abandon("unfinished", reason)
        now = perf_counter()
        for answer in self.answers:
            if answer.status is None:
                answer.close("not_sent", now, reason)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
