"""The cost model against physics, and its closed sum against the plain one."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servewright.tools.contract.errors import BadInput, EngineFailure
from servewright.tools.simulator.config import FLAGS, WEIGHT_BYTES, resolve
from servewright.tools.simulator.cost import StepCost
from servewright.tools.simulator.profiles import hardware, model, names
from servewright.tools.simulator.request import Request


def step(*parts):
    """(tokens computed, tokens before) for each request."""
    made = []
    for number, (new, before) in enumerate(parts):
        request = Request(number, before + new, 1, ())
        request.computed = before + new
        made.append((request, new))
    return made


def test_every_number_has_a_source():
    for name in names("hardware"):
        profile = hardware(name)
        figures = set(profile._fields) - {"name", "sources"}
        assert set(profile.sources) == figures and all(profile.sources.values())
        assert all(0 < share < 1 for share in (profile.gemm_share, profile.attention_share, profile.bandwidth_share))
    for name in names("models"):
        assert model(name).source


@pytest.mark.parametrize(("hw", "name"), list(itertools.product(["h100-sxm", "h200-sxm", "a100-sxm", "l40s"], ["llama-3.1-8b", "qwen3-8b", "smollm2-135m"])))
def test_nothing_is_faster_than_light(hw, name):
    config = resolve({"max_model_len": 8192}, name, hw, 1, 0)
    cost, m, h = StepCost(config, 0.0), config.model, config.hardware
    prefill, decode = cost.seconds(step((4096, 0))), cost.seconds(step((1, 4000)))
    assert prefill > 2 * m.parameters * 4096 / h.flops["bf16"]
    assert decode > (config.weight_bytes + 4001 * config.kv_bytes_per_token) / h.bandwidth


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 9000), min_size=1, max_size=60), st.integers(1, 300), st.booleans(), st.sampled_from(["llama-3.1-8b", "smollm2-135m"]))
def test_many_decodes_cost_as_much_as_each_by_itself(contexts, steps, asynchronous, name):
    cost = StepCost(resolve({"async_scheduling": asynchronous}, name, "h100-sxm", 1, 5))
    one_by_one = sum(cost.seconds(step(*((1, before + done) for before in contexts))) for done in range(steps))
    assert cost.decodes(len(contexts), sum(contexts) + len(contexts), steps) == pytest.approx(one_by_one, rel=1e-9)


def test_tensor_parallelism_and_precision_have_their_price_and_gain():
    batch = step(*[(1, 1000)] * 64)

    def at(gpus=1, **args):
        return StepCost(resolve(args, "qwen3-32b", "h200-sxm", gpus, 0), 0.0).seconds(batch)

    assert at(1) > at(2) > at(4) > at(1) / 4
    assert at(quantization="fp8") < at() and at(kv_cache_dtype="fp8") < at()
    assert at(enforce_eager=True) > at() and at(async_scheduling=False) > at()


def test_kv_blocks_follow_from_memory():
    def blocks(**args):
        return resolve(args, "llama-3.1-8b", "h100-sxm", 1, 0).blocks

    assert 26000 < blocks() < 31000, "about what vLLM reports for it"
    assert blocks(kv_cache_dtype="fp8") == pytest.approx(2 * blocks(), abs=2)
    assert blocks(max_num_batched_tokens=65536) < blocks() < blocks(gpu_memory_utilization=0.95)
    assert blocks(num_gpu_blocks_override=9000) == 9000


def test_defaults_are_vllms_by_device():
    def effective(hw):
        return resolve({"max_model_len": 4096}, "llama-3.1-8b", hw, 1, 0).effective()

    assert [effective(hw)["max_num_batched_tokens"] for hw in ("h100-sxm", "a100-sxm", "l40s")] == [8192, 2048, 2048]
    assert [effective(hw)["max_num_seqs"] for hw in ("h200-sxm", "a100-sxm")] == [1024, 256]
    assert set(effective("h100-sxm")) == set(FLAGS) - {"num_gpu_blocks_override"} | {"num_gpu_blocks"}
    assert set(WEIGHT_BYTES) == set(FLAGS["quantization"][0])


@pytest.mark.parametrize(
    "args",
    [
        {"max_num_seqs": 0},
        {"max_num_seqs": True},
        {"max_num_seqs": 2.5},
        {"gpu_memory_utilization": float("nan")},
        {"gpu_memory_utilization": 1.2},
        {"enable_prefix_caching": "maybe"},
        {"kv_cache_dtype": "int3"},
        {"max_model_len": 10**6},
        {"tensor_parallel_size": 3},
        {"enable_chunked_prefill": False, "max_num_batched_tokens": 2048},
        {"nonsense": 1},
    ],
    ids=str,
)
def test_bad_values_are_named(args):
    with pytest.raises(BadInput) as caught:
        resolve(args, "llama-3.1-8b", "h100-sxm", 1, 0)
    assert "--" in str(caught.value) or next(iter(args)) in str(caught.value)


def test_what_does_not_fit():
    with pytest.raises(EngineFailure, match="out of memory"):
        resolve({}, "llama-3.1-70b", "h100-sxm", 1, 0)
    assert resolve({"max_model_len": 8192}, "llama-3.1-70b", "h100-sxm", 4, 0).blocks > 0
