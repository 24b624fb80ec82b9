"""Virtual time: agreement with the stepwise scheduler and with the HTTP mode, and rows as a real replay writes them."""

import asyncio
import random
import statistics
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servewright.tools.contract.rows import ROW_SCHEMA
from servewright.tools.simulator.assemble import scheduler_of
from servewright.tools.simulator.config import resolve
from servewright.tools.simulator.cost import StepCost
from servewright.tools.simulator.load import SimRequest
from servewright.tools.simulator.request import Request, block_hashes
from servewright.tools.simulator.rows import virtual_rows
from servewright.tools.simulator.virtual import VirtualEngine, simulate


def config_of(**args):
    return resolve(args, "llama-3.1-8b", "h100-sxm", 1, 3)


def step_by_step(config, arrivals):
    """The plain loop that virtual time shortens."""
    scheduler, cost = scheduler_of(config), StepCost(config)
    queue = [Request(i, a.prompt.length, a.output_tokens, block_hashes(a.prompt.tokens, scheduler.block), arrival=a.at_s) for i, a in enumerate(arrivals)]
    requests, now = list(queue), 0.0
    while queue or scheduler.running or scheduler.waiting:
        if not scheduler.running and not scheduler.waiting:
            now = max(now, queue[0].arrival)
        while queue and queue[0].arrival <= now:
            scheduler.add(queue.pop(0))
        step = scheduler.schedule()
        if step:
            now += cost.seconds(step)
            scheduler.finish(step, now)
    return requests, scheduler


def load(seed, count, gap, prompt=400, answer=60):
    rng, at, arrivals = random.Random(seed), 0.0, []
    for number in range(count):
        at += rng.expovariate(1 / gap)
        shared = rng.choice([0, 64, 160])
        tokens = [7] * shared + [rng.randrange(1000, 9000) + number for _ in range(rng.randint(1, prompt))]
        arrivals.append(SimRequest(at, tokens, rng.randint(1, answer)))
    return arrivals


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.002, 0.02, 0.2]), st.sampled_from([42, 90, 400]), st.sampled_from([2, 8, 64]), st.booleans(), st.booleans())
def test_fast_forward_is_the_same_as_step_by_step(seed, gap, blocks, seqs, caching, asynchronous):
    config = config_of(num_gpu_blocks_override=blocks, max_model_len=640, max_num_seqs=seqs, max_num_batched_tokens=256, enable_prefix_caching=caching, async_scheduling=asynchronous)
    arrivals = load(seed, 25, gap)
    requests, scheduler = step_by_step(config, load(seed, 25, gap))
    engine = VirtualEngine(config)
    for outcome, request in zip(engine.replay(arrivals), requests, strict=True):
        assert outcome.status == "ok"
        assert outcome.first_s == pytest.approx(request.first, rel=1e-9)
        assert outcome.last_s == pytest.approx(request.last, rel=1e-9)
        assert (outcome.cached_tokens, outcome.output_tokens, outcome.preemptions) == (request.cached, request.output, request.preemptions)
    assert engine.scheduler.preemptions == scheduler.preemptions
    assert list(engine.scheduler.pool.lru) == list(scheduler.pool.lru)


def test_rows_have_the_contracts_columns_and_types():
    import polars as pl

    engine = VirtualEngine(config_of(max_model_len=1000))
    arrivals = [SimRequest(0.0, [5] * 100, 10), SimRequest(1.0, [6] * 100, 10), SimRequest(2.0, [6] * 995, 10), SimRequest(2.0, [8] * 100, 890)]
    rows, counters = virtual_rows(engine, [4, 3, 2, 1], arrivals, rate_index=2, offered_rps=1.5, warmup_s=0.5, drain_s=1.0)
    assert dict(rows.schema) == {name: getattr(pl, dtype) for name, dtype in ROW_SCHEMA.items()}
    assert rows["status"].to_list() == ["ok", "ok", "http_error", "unfinished"]
    assert rows["phase"].to_list() == ["warmup", "measure", "measure", "measure"]
    assert rows["output_tokens"].to_list() == [10, 10, None, None]
    assert (rows["first_s"].drop_nulls() > 0).all()
    assert counters["kv_blocks"] > 1000 and counters["running_max"] >= 1
    assert engine.reset_prefix_cache(), "an aborted request left blocks behind"


def test_launches_differ_by_their_seed_and_only_by_it():
    def last(seed, cv=None):
        config = resolve({}, "llama-3.1-8b", "h100-sxm", 1, seed)
        return simulate(config, load(1, 10, 0.01), noise_cv=cv)[0][-1].last_s

    assert last(1) == last(1) != last(2)
    assert last(1, 0.0) == last(2, 0.0)


def figures(config, arrivals):
    outcomes, counters = simulate(config, arrivals, noise_cv=0.0)
    ttft = [o.first_s - a.at_s for o, a in zip(outcomes, arrivals, strict=True)]
    tpot = [(o.last_s - o.first_s) / (o.output_tokens - 1) for o in outcomes if o.output_tokens > 1]
    return statistics.mean(ttft), statistics.mean(tpot), max(tpot), counters


def test_bad_configurations_show_where_they_do_in_life():
    """Directions only: each follows from the schedule and the roofline."""
    arrivals = load(9, 200, 0.05, prompt=3000, answer=200)
    good = figures(config_of(max_num_batched_tokens=2048), arrivals)
    starved = figures(config_of(max_num_batched_tokens=2048, max_num_seqs=4), arrivals)
    assert starved[0] > 10 * good[0] and starved[3]["waiting_max"] > good[3]["waiting_max"]
    stalled = figures(config_of(max_num_batched_tokens=32768), arrivals)
    assert stalled[2] > good[2]
    shared = [SimRequest(a.at_s, [9] * 6000 + list(a.prompt.tokens), a.output_tokens) for a in arrivals]
    cached, uncached = (figures(config_of(enable_prefix_caching=on), shared) for on in (True, False))
    assert uncached[0] > 2 * cached[0] and cached[3]["prefix_hit_share"] > 0.5
    short = figures(config_of(num_gpu_blocks_override=400, max_model_len=4096), arrivals)
    assert short[3]["preemptions"] > 0 and short[3]["kv_usage_max"] > 0.9


async def test_virtual_and_http_agree(launch, stream):
    """Over real sockets at clock 5. Where the machine is so busy that the engine itself is late, nothing is compared."""
    flags = {"max_num_seqs": 4, "max_num_batched_tokens": 1024}
    arrivals = load(4, 40, 0.1, prompt=1500, answer=50)
    expected = simulate(config_of(**flags), arrivals, noise_cv=0.0)[0]
    server = await asyncio.to_thread(launch, "--clock", "5", "--noise-cv", "0", *(f"--{name.replace('_', '-')}={value}" for name, value in flags.items()))
    start = time.monotonic() + 0.2

    async def one(arrival):
        await asyncio.sleep(start + arrival.at_s / 5 - time.monotonic())
        return await stream(server.port, {"prompt": list(arrival.prompt.tokens), "max_tokens": arrival.output_tokens, "ignore_eos": True})

    answers = await asyncio.gather(*(one(arrival) for arrival in arrivals))
    for (events, _), outcome in zip(answers, expected, strict=True):
        assert events[-1]["usage"]["completion_tokens"] == outcome.output_tokens
    if await asyncio.to_thread(server.metric, "sim:clock_lag_seconds") > 0.05:
        pytest.skip("the machine was too busy for a clock of 5")
    ends = [(times[-1] - start) * 5 for _, times in answers]
    late = [end - outcome.last_s for end, outcome in zip(ends, expected, strict=True)]
    assert abs(statistics.median(late)) < 0.1 * statistics.median(o.last_s - a.at_s for o, a in zip(expected, arrivals, strict=True)) + 0.05
