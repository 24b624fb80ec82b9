"""Step by step the schedule that vLLM's own scheduler made, given the same step costs."""

import gzip
import json
from pathlib import Path

import pytest

from servewright.tools.simulator.blocks import BlockPool
from servewright.tools.simulator.library import Library
from servewright.tools.simulator.load import Prompt
from servewright.tools.simulator.request import Request, block_hashes
from servewright.tools.simulator.runs import RunPool
from servewright.tools.simulator.scheduler import Scheduler

HERE = Path(__file__).parent
SHARED = Path(__file__).parents[4] / "shared"
PARAMETERS, LAYERS, KV_HEADS, HEAD, HEADS = 8.03e9, 32, 8, 128, 32


def seconds(items):
    """The step cost under which the schedules were made: an 8B model on an H100."""
    tokens = sum(new for new, _ in items)
    attention = sum(4 * LAYERS * HEADS * HEAD * (new * before + new * (new + 1) / 2) for new, before in items)
    kv = sum(2 * LAYERS * KV_HEADS * HEAD * 2 * (before + new) for new, before in items)
    return max(2 * PARAMETERS * tokens / (989e12 * 0.6) + attention / (989e12 * 0.45), (2 * PARAMETERS + kv) / (3.35e12 * 0.8)) + 0.0015


def prompt_of(row):
    return [token for h in row["hash_ids"] for token in range(h * 512, h * 512 + 512)][: row["input_length"]]


def schedule(rows, *, blocks, budget, seqs, replicas=1, steps=10**9, by_run=False):
    prompts = {index: Prompt(prompt_of(row)) if by_run else prompt_of(row) for index, row in enumerate(rows) if index % replicas == 0}
    pool = RunPool(blocks, True, Library(prompts.values(), 16)) if by_run else BlockPool(blocks, True)
    scheduler = Scheduler(pool, block=16, budget=budget, seqs=seqs, max_len=131072 + 4096)
    queue = [(row["timestamp"] / 1000, index) for index, row in enumerate(rows) if index % replicas == 0]
    now, made = 0.0, []
    while (queue or scheduler.running or scheduler.waiting) and len(made) < steps:
        if not scheduler.running and not scheduler.waiting:
            now = max(now, queue[0][0])
        while queue and queue[0][0] <= now:
            arrival, index = queue.pop(0)
            prompt = prompts[index]
            contents = pool.table(pool.library.path(prompt), index) if by_run else block_hashes(prompt, 16)
            scheduler.add(Request(index, rows[index]["input_length"], max(1, rows[index]["output_length"]), contents, arrival=arrival))
        step = scheduler.schedule()
        now += seconds([(new, request.computed - new) for request, new in step])
        made.append([round(now, 6), {str(request.number): new for request, new in step}])
        scheduler.finish(step, now)
    return made, scheduler


def compare(made, expected):
    assert len(made) == len(expected)
    for number, ((at, tokens), (expected_at, expected_tokens)) in enumerate(zip(made, expected, strict=True)):
        assert tokens == expected_tokens, f"step {number}"
        assert at == pytest.approx(expected_at, abs=2e-6), f"step {number}"


@pytest.mark.parametrize("by_run", [False, True], ids=["by block", "by run"])
@pytest.mark.parametrize("case", [0, 1])
def test_few_blocks_preempt_evict_and_hit_as_in_vllm(case, by_run):
    record = json.loads(gzip.decompress((HERE / "vllm032_preempting.json.gz").read_bytes()))
    expected = record["cases"][case]
    made, scheduler = schedule(record["trace"], blocks=expected["num_blocks"], budget=expected["max_num_batched_tokens"], seqs=expected["max_num_seqs"], by_run=by_run)
    compare(made, expected["steps"])
    assert scheduler.preemptions > 10 and scheduler.hits > 0
    assert scheduler.pool.free == scheduler.pool.usable


def test_two_thousand_steps_of_a_production_trace():
    case, trace = SHARED / "cases/vllm032_schedule.json", SHARED / "traces/mooncake_conversation.jsonl.gz"
    if not case.is_file() or not trace.is_file():
        pytest.skip("needs shared/cases/vllm032_schedule.json and shared/traces/mooncake_conversation.jsonl.gz")
    with gzip.open(trace, "rt") as lines:
        rows = [json.loads(line) for _, line in zip(range(800), lines, strict=False)]
    made, _ = schedule(rows, blocks=28000, budget=8192, seqs=256, replicas=8, steps=2000)
    compare(made, json.loads(case.read_text())["steps"])
