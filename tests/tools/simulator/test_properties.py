"""What holds for every workload: tokens are conserved, blocks are neither lost nor used twice, and nobody starves."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from servewright.tools.simulator.blocks import BlockPool
from servewright.tools.simulator.request import FINISHED, Request, block_hashes
from servewright.tools.simulator.scheduler import Scheduler

BLOCK = 4
requests_of = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 40), st.integers(1, 20), st.integers(0, 30), st.integers(0, 2)), min_size=1, max_size=14)
settings_of = st.fixed_dictionaries(
    {"blocks": st.integers(17, 40), "budget": st.integers(3, 40), "seqs": st.integers(1, 3), "caching": st.booleans(), "priority": st.booleans(), "cap": st.sampled_from([0, 5]), "reserve": st.booleans()}
)


def check_blocks(scheduler, caching):
    pool = scheduler.pool
    held = Counter(key for request in scheduler.running for key in request.table.keys)
    assert held == pool.references
    assert not set(held) & set(pool.lru)
    plain = sum(request.table.plain for request in scheduler.running)
    assert len(held) + plain + pool.blank + len(pool.lru) == pool.usable
    for request in scheduler.running:
        assert request.table.hashed + request.table.plain == -(-request.computed // BLOCK)
        assert request.table.plain <= 1 or not caching
    for request in scheduler.waiting:
        assert request.table.hashed + request.table.plain == 0


@settings(max_examples=80, deadline=None)
@given(requests_of, settings_of)
def test_invariants(specs, options):
    """A request is (shared prefix, prompt tokens, answer tokens, step of arrival, priority); every one fits in the pool by itself."""
    caching = options["caching"]
    scheduler = Scheduler(
        BlockPool(options["blocks"], caching), block=BLOCK, budget=options["budget"], seqs=options["seqs"], max_len=64, priority=options["priority"], long_prefill=options["cap"], reserve=options["reserve"]
    )
    requests = []
    for number, (family, prompt, answer, arrival, priority) in enumerate(specs):
        tokens = [family] * min(prompt, 13) + [100 + number] * max(0, prompt - 13)
        requests.append(Request(number, prompt, answer, block_hashes(tokens, BLOCK), arrival=arrival, priority=priority))
    pending = sorted(requests, key=lambda r: (r.arrival, r.number))
    admitted: list[int] = []
    for moment in range(5000):
        while pending and pending[0].arrival <= moment:
            scheduler.add(pending.pop(0))
        preemptions = scheduler.preemptions
        step = scheduler.schedule()
        assert sum(new for _, new in step) <= options["budget"] and all(new > 0 for _, new in step)
        assert len(scheduler.running) <= options["seqs"]
        admitted += [request.number for request, _ in step if request.number not in admitted]
        check_blocks(scheduler, caching)
        before = {request: request.output for request, _ in step}
        scheduler.finish(step, float(moment))
        assert all(request.output - output in (0, 1) for request, output in before.items())
        if not pending and not scheduler.running and not scheduler.waiting:
            break
        if not step:
            idle = not scheduler.running and not scheduler.waiting
            assert idle or scheduler.preemptions > preemptions, "work is left, and nothing runs"
    assert all(request.state == FINISHED and request.output == request.limit for request in requests)
    assert scheduler.pool.free == scheduler.pool.usable
    if not options["priority"]:
        order = [request.number for request in sorted(requests, key=lambda r: (r.arrival, r.number))]
        assert admitted == order, "first come, first served"


@settings(max_examples=30, deadline=None)
@given(requests_of, st.data())
def test_aborts_give_all_blocks_back(specs, data):
    scheduler = Scheduler(BlockPool(24, True), block=BLOCK, budget=16, seqs=4, max_len=64)
    requests = [Request(i, prompt, answer, block_hashes([family] * prompt, BLOCK)) for i, (family, prompt, answer, _, _) in enumerate(specs)]
    for request in requests:
        scheduler.add(request)
    for _ in range(6):
        scheduler.finish(scheduler.schedule())
        scheduler.abort(data.draw(st.sampled_from(requests)))
        check_blocks(scheduler, True)
    for request in requests:
        scheduler.abort(request)
    assert scheduler.pool.free == scheduler.pool.usable
    assert scheduler.pool.reset()
    assert scheduler.pool.lookup(requests[0].table, 9) == (0, [])
