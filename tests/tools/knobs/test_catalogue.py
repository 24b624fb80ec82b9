"""The catalogue: what is refused before a launch, and what counts as lossless."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewright.tools.contract.configuration import Configuration
from servewright.tools.contract.errors import BadInput
from servewright.tools.contract.hypothesis import Intervention
from servewright.tools.knobs.catalogue import catalogue
from servewright.tools.knobs.types import Knob
from servewright.tools.knobs.values import coerce
from servewright.tools.knobs.vllm import frozen_schema
from servewright.tools.simulator.config import FLAGS

SIM, VLLM = catalogue("sim"), catalogue("vllm")


def vllm(**args: Any) -> Configuration:
    return VLLM.check(Configuration(kind="vllm", args=args))


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"max_num_seq": 8}, "nearest: max_num_seqs"),
        ({"--max-num-seqs": 8}, "the name with underscores: max_num_seqs"),
        ({"swap_space": 4}, "removed with the V0 engine"),
        ({"max_seq_len_to_capture": 4}, "renamed: max_cudagraph_capture_size"),
        ({"max_num_seqs": 0}, "of at least 1|from 1 to"),
        ({"max_num_seqs": "many"}, "a whole number"),
        ({"max_num_seqs": True}, "a whole number"),
        ({"max_num_seqs": 8.5}, "a whole number"),
        ({"enable_prefix_caching": "yes"}, "true or false"),
        ({"scheduling_policy": "lifo"}, "one of fcfs, priority"),
        ({"gpu_memory_utilization": 1.5}, "from 0.01 to 1"),
        ({"kv_cache_dtype": "fp7"}, "one of auto"),
        ({"max_num_batched_tokens": 4, "max_num_seqs": 8}, "at least max_num_seqs"),
        ({"max_num_batched_tokens": 512, "max_model_len": 2048, "enable_chunked_prefill": False}, "where chunked prefill is off"),
        ({"long_prefill_token_threshold": 4096, "max_model_len": 2048}, "at most max_model_len"),
        ({"long_prefill_token_threshold": 64, "enable_chunked_prefill": False}, "enable_chunked_prefill=true beside"),
        ({"port": 80}, "sets it itself"),
        ({"api_key": "sk-1"}, "sets it itself"),
        ({"dtype": "auto\n--port=1"}, "one of auto"),
        ({"attention_backend": "A\x00B"}, "without control characters"),
        ({"cudagraph_capture_sizes": "1 2 --port 80"}, "look like flags"),
    ],
)
def test_what_the_engine_would_refuse_is_refused_before(args: dict[str, Any], told: str) -> None:
    with pytest.raises(BadInput, match=told):
        vllm(**args)


def test_equal_settings_have_equal_digests() -> None:
    assert vllm(max_num_seqs="64", max_model_len="2K", enforce_eager="true").digest() == vllm(max_num_seqs=64.0, max_model_len=2048, enforce_eager=True).digest()
    assert vllm(max_num_batched_tokens="8k").args == {"max_num_batched_tokens": 8000}


def test_environment_is_an_allow_list() -> None:
    checked = VLLM.check(Configuration(kind="vllm", env={"VLLM_CPU_KVCACHE_SPACE": "02"}))
    assert checked.env == {"VLLM_CPU_KVCACHE_SPACE": "2"}
    for name in ("LD_PRELOAD", "PYTHONPATH", "OPENAI_API_KEY"):
        with pytest.raises(BadInput, match="may steer vllm"):
            VLLM.check(Configuration(kind="vllm", env={name: "x"}))
    with pytest.raises(BadInput, match="allowed: none"):
        SIM.check(Configuration(kind="sim", env={"PATH": "x"}))


def test_lossless_is_the_catalogues_word() -> None:
    assert VLLM.lossless(Intervention(set={"max_num_seqs": 64, "enable_prefix_caching": True}))
    for change in (
        Intervention(set={"max_num_seqs": 64, "kv_cache_dtype": "fp8"}),
        Intervention(set={"quantization": "fp8"}),
        Intervention(unset=("dtype",)),
        Intervention(set={"max_model_len": 512}),
        Intervention(set={"max_logprobs": 3}),
        Intervention(env={"VLLM_USE_DEEP_GEMM": "1"}),
        Intervention(set={"max_num_seqs": 64}, patches=("sha256:1",)),
    ):
        assert not VLLM.lossless(change), change
    with pytest.raises(BadInput, match="nearest"):
        VLLM.lossless(Intervention(set={"max_nun_seqs": 1}))


def test_an_intervention_may_not_touch_what_is_the_users() -> None:
    for change in (
        Intervention(set={"trust_remote_code": True}), Intervention(set={"worker_cls": "evil.Worker"}), Intervention(set={"middleware": "evil"}),
        Intervention(unset=("seed",)), Intervention(set={"host": "0.0.0.0"}), Intervention(set={"hf_overrides": "{}"}), Intervention(set={"speculative_config": "{}"}),
    ):  # fmt: skip
        with pytest.raises(BadInput, match="user's to set"):
            VLLM.check_change(change)
    assert VLLM.check_change(Intervention(set={"max_num_seqs": "64"})).set == {"max_num_seqs": 64}


def test_families_and_activation() -> None:
    change = Intervention(set={"max_num_seqs": "64", "enable_prefix_caching": True}, unset=("scheduling_policy", "max_num_batched_tokens"), patches=("sha256:1",))
    assert VLLM.families(change) == {"scheduling", "prefix_caching", "source"}
    assert [str(check) for check in VLLM.activation(change)] == [
        "median(config.enable_prefix_caching, candidate) == True",
        "median(config.max_num_seqs, candidate) == 64",
        "median(config.scheduling_policy, candidate) == fcfs",
    ]


def test_command_line_arguments() -> None:
    args = vllm(max_num_seqs=64, enable_prefix_caching=False, enforce_eager=True, cudagraph_capture_sizes="1 2 4")
    assert VLLM.argv(args.args) == ["--cudagraph-capture-sizes", "1", "2", "4", "--no-enable-prefix-caching", "--enforce-eager", "--max-num-seqs=64"]


def test_the_schema_we_ship_is_classed_conservatively() -> None:
    assert len(VLLM.knobs) == len(frozen_schema()["flags"]) > 250 and VLLM.version.startswith("0.32")
    unknown = VLLM.knob("max_logprobs")
    assert not unknown.lossless and unknown.kind == "int"
    assert VLLM.knob("max_num_seqs").lossless and VLLM.knob("kv_cache_dtype").choices


def test_another_version_of_the_engine_has_other_flags() -> None:
    schema = json.loads(json.dumps(frozen_schema()))
    schema["version"] = "9.9"
    schema["flags"] = [flag for flag in schema["flags"] if flag["name"] != "stream_interval"]
    other = catalogue("vllm", schema)
    with pytest.raises(BadInput, match=r"a flag of vllm 9\.9"):
        other.knob("stream_interval")


def test_the_sims_catalogue_is_the_sims_flags() -> None:
    assert set(SIM.knobs) == set(FLAGS)
    for name, (kind, default) in FLAGS.items():
        knob = SIM.knob(name)
        assert knob.default == default, name
        assert knob.choices == kind if isinstance(kind, tuple) else knob.kind == kind.__name__, name


def test_no_catalogue_for_sglang_yet() -> None:
    with pytest.raises(BadInput, match="sim or vllm"):
        catalogue("sglang")


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.lists(st.integers())), st.sampled_from(["int", "float", "bool", "str", "choice"]))
def test_any_value_is_taken_in_its_type_or_refused(value: object, kind: Any) -> None:
    knob = Knob(name="x", kind=kind, choices=("a",) if kind == "choice" else (), minimum=0, maximum=10, family="memory", lossless=True)
    try:
        taken = coerce(knob, value, "field")
    except BadInput as error:
        assert error.field == "field" and "for x" in error.expected
    else:
        assert type(taken).__name__ == {"choice": "str"}.get(kind, kind)
        assert coerce(knob, taken, "field") == taken
