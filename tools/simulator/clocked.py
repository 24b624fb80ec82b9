"""The scheduler on a clock: steps end when the cost model says, tokens leave when their step ends."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Protocol

from .assemble import scheduler_of
from .config import SimConfig
from .cost import StepCost
from .forward import advance, context_of, steady_steps
from .metrics import LogHistogram, Metrics
from .request import FINISHED, Request
from .scheduler import Step
from .timer import Timer


class Listener(Protocol):
    """Whoever waits for a request's tokens. `natural`: the answer ends by itself, not by its limit."""

    natural: bool

    def tokens(self, count: int, finished: bool) -> None:
        """`count` tokens are due by now, all told."""
        ...


class ClockedEngine:
    """Steps follow each other on an absolute schedule: a step that is handled late doesn't make the next one late, and `lag` says how late they were.

    `clock`: server seconds in a wall second. All times are server seconds since the start. `lags` has a histogram for each stretch between cache resets.
    """

    def __init__(self, config: SimConfig, clock: float, loop: asyncio.AbstractEventLoop, noise_cv: float | None = None) -> None:
        self.config, self.clock = config, clock
        self.scheduler = scheduler_of(config)
        self.cost = StepCost(config, noise_cv)
        self.metrics = Metrics()
        self.lag = LogHistogram()
        self.lags = [LogHistogram()]
        self._listeners: dict[Request, Listener] = {}
        self._arrived: deque[Request] = deque()
        self._step: Step | None = None  # empty: one more decode of all that run
        self._steady = 0  # steps of that kind that may follow without being scheduled
        self._end = 0.0
        self._origin = time.monotonic()
        self._loop = loop
        self._timer = Timer(loop, self._due)

    def now(self) -> float:
        return (time.monotonic() - self._origin) * self.clock

    def reset_prefix_cache(self) -> bool:
        """Empty the cache; whoever measures in steps does so between them, so a new account of lag begins."""
        self.lags.append(LogHistogram())
        return self.scheduler.pool.reset()

    def submit(self, request: Request, listener: Listener) -> None:
        """`request.arrival` must be stamped with `now()`."""
        self._listeners[request] = listener
        self._arrived.append(request)
        if self._step is None:
            self._begin(max(request.arrival, self._end))

    def abort(self, request: Request) -> None:
        """The client has left: the request's blocks become free, its tokens go nowhere."""
        if self._listeners.pop(request, None) is None:
            return
        if request in self._arrived:
            self._arrived.remove(request)
        else:
            self.scheduler.abort(request)
            self._steady = 0
        self.metrics.finished["abort"] += 1

    @property
    def waiting(self) -> int:
        return len(self.scheduler.waiting) + len(self._arrived)

    def _begin(self, start: float) -> None:
        """Plan the step that starts at `start`, with all that had arrived by then."""
        arrived, scheduler = self._arrived, self.scheduler
        idle = not scheduler.running and not scheduler.waiting
        if idle and not arrived:
            self._step = None
            return
        if idle:
            start = max(start, arrived[0].arrival)
        while arrived and arrived[0].arrival <= start:
            scheduler.add(arrived.popleft())
            self._steady = 0
        if self._steady:
            self._step = []
            self._end = start + self.cost.decodes(len(scheduler.running), context_of(scheduler), 1)
        else:
            while not (step := scheduler.schedule()):
                pass  # under the priority policy a request that preempts itself ends the step; its blocks are free now
            self._step = step
            self._end = start + self.cost.seconds(step)
        self._timer.set(self._origin + self._end / self.clock)

    def _due(self) -> None:
        """The step in progress ends: send its tokens and go on."""
        step, end, scheduler = self._step, self._end, self.scheduler
        if step is None:
            return
        if step:
            scheduler.finish(step, end)
            served = [request for request, _ in step if request.output and request.computed == request.prompt + request.output - 1]
            self.metrics.step_tokens += sum(new for _, new in step)
            self._steady = steady_steps(scheduler)
        else:
            served = scheduler.running
            advance(scheduler, 1, end)
            self.metrics.step_tokens += len(served)
            self._steady = max(0, self._steady - 1)
        self.metrics.steps += 1
        listeners = self._listeners
        for request in served:
            listener = listeners.get(request)
            if listener is None:
                continue
            finished = request.state == FINISHED
            if finished:
                del listeners[request]
                self.metrics.complete(request, listener.natural)
            listener.tokens(request.output, finished)
        self._loop.call_soon(self._note, end)  # the loop writes at its end of turn; only then are the tokens out
        self._begin(end)

    def _note(self, end: float) -> None:
        late = max(0.0, self.now() - end)
        self.lag.add(late)
        self.lags[-1].add(late)

    def close(self) -> None:
        self._timer.close()
