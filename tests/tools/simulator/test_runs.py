"""The pool by runs gives the same answers as the pool by blocks."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from servewright.tools.simulator.config import resolve
from servewright.tools.simulator.library import Library
from servewright.tools.simulator.load import Prompt, SimRequest
from servewright.tools.simulator.virtual import VirtualEngine


def prompts_of(rng, count, longest):
    """Prompts that branch off each other anywhere, some the same as others, some ending exactly with a block."""
    made = []
    for number in range(count):
        base = list(rng.choice(made)) if made and rng.random() < 0.7 else []
        base = base[: rng.randint(0, len(base))] if rng.random() < 0.8 else base
        fresh = rng.choice([0, 0, rng.randint(1, 12) * 8, rng.randint(1, 90)])
        tokens = (base + [1000 * number + i for i in range(fresh)])[:longest]
        made.append(tokens or [number])
    return [Prompt(tokens) for tokens in made]


def test_a_library_walks_every_prompt_in_full():
    rng = random.Random(3)
    prompts = prompts_of(rng, 200, 400)
    library = Library(prompts, 8)
    for prompt in prompts:
        path = library.path(prompt)
        blocks = [block_hash for run in path for block_hash in run.hashes[run.start : run.start + run.size]]
        assert blocks == prompt.hashes(8)
    assert sum(run.size for run in library.runs) == len({block_hash for prompt in prompts for block_hash in prompt.hashes(8)})


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([45, 60, 150]), st.sampled_from([2, 6, 40]), st.sampled_from([24, 64, 300]), st.sampled_from([0, 24]), st.booleans(), st.sampled_from([0.001, 0.02]))
def test_same_outcomes_and_counters(seed, blocks, seqs, budget, cap, priority, gap):
    flags = {
        "num_gpu_blocks_override": blocks,
        "block_size": 8,
        "max_model_len": 340,
        "max_num_seqs": min(seqs, budget),
        "max_num_batched_tokens": budget,
        "long_prefill_token_threshold": cap,
        "scheduling_policy": "priority" if priority else "fcfs",
    }
    config = resolve(flags, "llama-3.1-8b", "h100-sxm", 1, 0)
    rng = random.Random(seed)
    prompts = prompts_of(rng, 20, 280)
    library = Library(prompts, 8)
    plain, quick = VirtualEngine(config), VirtualEngine(config, library=library)
    for _ in range(2):
        at, arrivals = 0.0, []
        for _ in range(30):
            at += rng.expovariate(1 / gap)
            arrivals.append(SimRequest(at, rng.choice(prompts), rng.randint(1, 50)))
        until = at + rng.choice([0.05, 100.0])
        assert quick.replay(arrivals, until) == plain.replay(arrivals, until)
        assert quick.counters() == plain.counters()
        assert quick.scheduler.pool.free == plain.scheduler.pool.free == plain.scheduler.pool.usable
        check(quick.scheduler.pool, plain.scheduler.pool)
    assert quick.reset_prefix_cache() and plain.reset_prefix_cache()


def check(by_run, by_block):
    """As many blocks are cached in both, and the queue of eviction is sound."""
    free, extent = 0, by_run._head.after
    while extent is not by_run._tail:
        assert extent.high > extent.low and not extent.holders and extent.before.after is extent
        assert extent in (extent.shelf.found if extent.found else extent.shelf.copies)
        free += extent.high - extent.low
        extent = extent.after
    assert free == len(by_block.lru) and by_run.blank == by_block.blank
