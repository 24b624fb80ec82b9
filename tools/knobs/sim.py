"""Arguments of the embedded engine: vLLM's names and meanings, closed (nothing else is known)."""

from __future__ import annotations

from typing import Any

from .catalogue import Catalogue
from .curated import CURATED
from .rules import RULES
from .types import Knob

_OWN: dict[str, dict[str, Any]] = {
    "max_num_seqs": {},
    "max_num_batched_tokens": {},
    "enable_chunked_prefill": {},
    "long_prefill_token_threshold": {},
    "scheduling_policy": {},
    "stream_interval": {},
    "scheduler_reserve_full_isl": {},
    "watermark": {},
    "async_scheduling": {"default": True},
    "enable_prefix_caching": {},
    "gpu_memory_utilization": {},
    "num_gpu_blocks_override": {"minimum": 2},
    "block_size": {"default": 16},
    "max_model_len": {},
    "kv_cache_dtype": {"kind": "choice", "choices": ("auto", "fp8", "fp8_e4m3")},
    "quantization": {"kind": "choice", "choices": ("none", "fp8", "awq", "gptq"), "default": "none"},
    "dtype": {"kind": "choice", "choices": ("auto", "bfloat16", "float16")},
    "tensor_parallel_size": {"default": None},
    "enforce_eager": {},
    "disable_cascade_attn": {"default": True, "no_effect": "cascade attention is gone from the engine that is simulated"},
    "seed": {},
}
"""What differs from the curated knob."""


def sim_catalogue() -> Catalogue:
    curated = {knob.name: knob for knob in CURATED}
    knobs = {name: Knob.model_validate(curated[name].model_dump() | changes) for name, changes in _OWN.items()}
    return Catalogue("sim", "vllm-0.32-like", knobs, variables={}, gone={}, rules=RULES)
