"""The simulator in virtual time: a replay's requests in, their times out. Predictions, never measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .assemble import scheduler_of
from .config import SimConfig
from .cost import StepCost
from .forward import advance, context_of, steady_steps, steps_until
from .library import Library
from .load import Outcome, Prompt, SimRequest
from .request import FINISHED, Request, salt_of
from .runs import RunTable


@dataclass(slots=True)
class Gauges:
    """Sums over virtual time of what a scraper would see."""

    span: float = 0.0
    running: float = 0.0
    waiting: float = 0.0
    running_max: int = 0
    waiting_max: int = 0
    usage_max: float = 0.0
    steps: int = 0

    def see(self, running: int, waiting: int, usage: float, seconds: float, steps: int = 1) -> None:
        self.span += seconds
        self.running += running * seconds
        self.waiting += waiting * seconds
        self.running_max = max(self.running_max, running)
        self.waiting_max = max(self.waiting_max, waiting)
        self.usage_max = max(self.usage_max, usage)
        self.steps += steps


class VirtualEngine:
    """One launch. Its cache and counters live on from replay to replay, as a server's do. `noise_cv` 0: the profile's exact speed.

    `library`: of all prompts to come, for the configuration's block size. Same results, many times faster on long prompts; make it once for many engines.
    """

    def __init__(self, config: SimConfig, noise_cv: float | None = None, library: Library | None = None) -> None:
        self.config, self.library = config, library
        self.scheduler = scheduler_of(config, library)
        self.cost = StepCost(config, noise_cv)
        self.gauges = Gauges()

    def reset_prefix_cache(self) -> bool:
        """False while blocks are in use, as in vLLM."""
        return self.scheduler.pool.reset()

    def counters(self) -> dict[str, float]:
        """The engine's counters so far, by the names of observables."""
        scheduler, gauges = self.scheduler, self.gauges
        counters = {
            "preemptions": float(scheduler.preemptions),
            "kv_usage_max": gauges.usage_max,
            "running_mean": gauges.running / gauges.span if gauges.span else 0.0,
            "running_max": float(gauges.running_max),
            "waiting_mean": gauges.waiting / gauges.span if gauges.span else 0.0,
            "waiting_max": float(gauges.waiting_max),
            "kv_blocks": float(self.config.blocks),
        }
        if scheduler.queries:
            counters["prefix_hit_share"] = scheduler.hits / scheduler.queries
        return counters

    def replay(self, arrivals: Sequence[SimRequest], until: float = float("inf")) -> list[Outcome]:
        """Serve `arrivals` (any order) from time 0 to `until`; what is open then is aborted, as by a client that leaves. Outcomes in the order given."""
        max_len = self.scheduler.max_len
        requests: list[Request | None] = []
        for number, arrival in enumerate(arrivals):
            prompt = arrival.prompt
            limit = max(1, arrival.output_tokens)
            fits = prompt.length + limit <= max_len
            requests.append(Request(number, prompt.length, limit, self._contents(prompt), arrival=arrival.at_s) if fits else None)
        self._serve(sorted((r for r in requests if r is not None), key=lambda r: (r.arrival, r.number)), until)
        for request in requests:
            if request is not None and request.state != FINISHED:
                self.scheduler.abort(request)
                request.last = -1.0
        return [_outcome(request, arrival, until) for request, arrival in zip(requests, arrivals, strict=True)]

    def _contents(self, prompt: Prompt) -> Sequence[int] | RunTable:
        if not self.scheduler.pool.caching:
            return ()
        hashes = prompt.hashes(self.scheduler.block)
        return hashes if self.library is None else self.scheduler.pool.table(self.library.path(prompt), salt_of(hashes, prompt.length))

    def _serve(self, queue: list[Request], until: float) -> None:
        scheduler, cost, see = self.scheduler, self.cost, self.gauges.see
        pool = scheduler.pool
        now, position, total = 0.0, 0, len(queue)
        while now < until:
            if not scheduler.running and not scheduler.waiting:
                if position == total:
                    break
                now = max(now, queue[position].arrival)
            while position < total and queue[position].arrival <= now:
                scheduler.add(queue[position])
                position += 1
            step = scheduler.schedule()
            if not step:
                continue  # under the priority policy a request that preempts itself ends the step; its blocks are free now
            seconds = cost.seconds(step)
            now += seconds
            see(len(scheduler.running), len(scheduler.waiting), pool.usage, seconds)
            scheduler.finish(step, now)
            arrival = queue[position].arrival if position < total else float("inf")
            if arrival <= now or now >= until or not (steps := steady_steps(scheduler)):
                continue
            sequences, context = len(scheduler.running), context_of(scheduler)
            steps = steps_until(cost, sequences, context, steps, min(arrival, until) - now)
            seconds = cost.decodes(sequences, context, steps)
            now += seconds
            waiting = len(scheduler.waiting)
            advance(scheduler, steps, now)
            see(sequences, waiting, pool.usage, seconds, steps)


def _outcome(request: Request | None, arrival: SimRequest, until: float) -> Outcome:
    if request is None:
        return Outcome(None, None, arrival.prompt.length, None, 0, "http_error", 0)
    ok = request.state == FINISHED and 0 <= request.last <= until
    first = request.first if 0 <= request.first <= until else None
    cached = request.cached if ok else None
    last = request.last if ok else (until if first is not None else None)
    return Outcome(first, last, request.prompt, cached, request.output if ok else 0, "ok" if ok else "unfinished", request.preemptions)


def simulate(
    config: SimConfig, arrivals: Sequence[SimRequest], *, until: float = float("inf"), noise_cv: float | None = None, library: Library | None = None
) -> tuple[list[Outcome], dict[str, float]]:
    """One fresh launch serves `arrivals`: outcomes in their order, and the engine's counters by the names of observables."""
    engine = VirtualEngine(config, noise_cv, library)
    return engine.replay(arrivals, until), engine.counters()
