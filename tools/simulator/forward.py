"""Many decode steps at once: while nobody arrives, finishes, or runs out of blocks, every step is the same one over again."""

from __future__ import annotations

from .cost import StepCost
from .request import Request
from .scheduler import Scheduler


def steady_steps(scheduler: Scheduler) -> int:
    """How many of the next steps only decode the running requests; 0 when the next step must be scheduled. A request may finish in the last of them."""
    running, waiting = scheduler.running, scheduler.waiting
    if not running or (waiting and not scheduler.blocked and len(running) < scheduler.seqs):
        return 0
    steps, max_len, block = scheduler.max_len, scheduler.max_len, scheduler.block
    for request in running:
        known = request.prompt + request.output
        if request.computed != known - 1 or not request.output:
            return 0
        steps = min(steps, request.limit - request.output, max_len - known)
    if waiting and scheduler.blocked and waiting[0].preemptions:
        # A preempted request at the head may come to fit once a twin's block is full.
        steps = min(steps, *(block - request.computed % block for request in running))
    return _fitting(scheduler, steps)


def _fitting(scheduler: Scheduler, steps: int) -> int:
    """At most `steps`, as long as the free blocks last."""
    free, block = scheduler.pool.free, scheduler.block

    def need(steps: int) -> int:
        return sum(max(0, -(-(r.computed + steps) // block) - r.table.hashed - r.table.plain) for r in scheduler.running)

    if need(steps) <= free:
        return steps
    low, high = 0, steps
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if need(middle) <= free else (low, middle)
    return low


def context_of(scheduler: Scheduler) -> int:
    """Tokens that the running requests attend to in the next decode step, summed."""
    return sum(request.computed for request in scheduler.running) + len(scheduler.running)


def steps_until(cost: StepCost, sequences: int, context: int, steps: int, wait: float) -> int:
    """The first number of decode steps, up to `steps`, that takes at least `wait` seconds."""
    if cost.decodes(sequences, context, steps) < wait:
        return steps
    low, high = 0, steps
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if cost.decodes(sequences, context, middle) >= wait else (middle, high)
    return high


def advance(scheduler: Scheduler, steps: int, now: float) -> list[Request]:
    """Carry out `steps` steady steps that end at `now`. Returns the requests that are complete."""
    pool, block = scheduler.pool, scheduler.block
    done: list[Request] = []
    for request in scheduler.running:
        request.computed = computed = request.computed + steps
        request.output += steps
        table = request.table
        need = -(-computed // block) - table.hashed - table.plain
        if need > 0:
            pool.take(table, need)
        if computed // block > table.hashed:
            pool.commit(table, computed // block)
        if request.output >= request.limit or request.prompt + request.output >= scheduler.max_len:
            done.append(request)
    if done:
        scheduler.retire(done, now)
    return done
