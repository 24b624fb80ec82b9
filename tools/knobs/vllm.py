"""vLLM's arguments: the installed engine's own schema, classed by what we know; what we don't know counts as lossy."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from ..contract.base import Scalar
from ..contract.endpoint import Family
from ..contract.errors import BadInput
from .catalogue import Catalogue
from .curated import CURATED
from .rules import RULES
from .types import Access, Knob, KnobKind

_FAMILIES: dict[str, Family] = {
    "SchedulerConfig": "scheduling",
    "CacheConfig": "memory",
    "OffloadConfig": "memory",
    "ParallelConfig": "parallelism",
    "SpeculativeConfig": "speculative",
}
"""Argument group of vLLM -> family; every other group is `kernels`."""

_RESERVED = frozenset({
    "model", "model_tag", "served_model_name", "host", "port", "uds", "headless", "grpc", "grpc_port", "config", "help", "api_server_count",
    "root_path", "data_parallel_supervisor_port", "uvicorn_log_level", "disable_uvicorn_access_log", "disable_access_log_for_endpoints",
    "disable_log_stats", "enable_prompt_tokens_details", "log_config_file", "logging_config", "api_key", "hf_token",
    "ssl_keyfile", "ssl_certfile", "ssl_ca_certs", "ssl_cert_reqs", "ssl_ciphers", "enable_ssl_refresh",
})  # fmt: skip
"""Where the server listens, what it serves, what measuring needs, and secrets (which belong into the environment)."""

_USER_ONLY = frozenset({
    "trust_remote_code", "tool_parser_plugin", "reasoning_parser_plugin", "io_processor_plugin", "middleware", "logits_processors", "scheduler_cls",
    "worker_cls", "worker_extension_cls", "allowed_local_media_path", "allowed_media_domains", "allowed_origins", "allowed_methods", "allowed_headers",
    "allow_credentials", "chat_template", "trust_request_chat_template", "trust_request_mm_kwargs", "hf_overrides", "hf_config_path", "model_class_overrides",
    "additional_config", "download_dir", "tokenizer", "tokenizer_mode", "revision", "code_revision", "tokenizer_revision", "lora_modules", "model_loader_extra_config",
    "kv_transfer_config", "kv_events_config", "ec_transfer_config", "weight_transfer_config", "profiler_config", "otlp_traces_endpoint", "tool_server",
    "enable_tokenizer_info_endpoint", "enable_log_outputs", "enable_log_requests", "seed", "generation_config", "override_generation_config",
    "master_addr", "data_parallel_address", "enable_scale_out", "config_format", "model_impl", "load_format", "default_mm_loras", "enable_sleep_mode",
    "enable_prompt_embeds", "enable_mm_embeds", "device_ids", "runner", "convert", "collect_detailed_traces", "speculative_config", "spec_model",
})  # fmt: skip
"""They load code, open access, write elsewhere, or say what the endpoint is: a person sets them, in the endpoint file."""

_GONE = {
    "device": "removed; the build of vLLM says which device it is for",
    "swap_space": "removed with the V0 engine: preempted requests are recomputed",
    "num_scheduler_steps": "removed with the V0 engine (multi-step scheduling); async_scheduling is what there is",
    "use_v2_block_manager": "removed: there is one block manager",
    "preemption_mode": "removed: preempted requests are recomputed",
    "enable_lora_bias": "removed",
    "max_seq_len_to_capture": "renamed: max_cudagraph_capture_size",
    "guided_decoding_backend": "moved into structured_outputs_config",
    "disable_log_requests": "reversed: enable_log_requests, which is off by default",
    "disable_async_output_proc": "removed with the V0 engine",
    "num_lookahead_slots": "removed: speculative_config says it",
    "speculative_model": "moved into speculative_config",
    "num_speculative_tokens": "moved into speculative_config",
    "scheduler_delay_factor": "removed with the V0 engine",
    "device_memory_utilization": "an alias of gpu_memory_utilization",
}

_VARIABLES: tuple[Knob, ...] = (
    Knob(name="VLLM_CPU_KVCACHE_SPACE", kind="int", minimum=1, maximum=4096, family="memory", lossless=True, failures=("out_of_memory",), meaning="KV cache on the CPU, GiB"),
    Knob(name="VLLM_ATTENTION_BACKEND", kind="str", family="kernels", lossless=False, meaning="attention kernels (older versions)"),
    Knob(name="VLLM_USE_FLASHINFER_SAMPLER", kind="choice", choices=("0", "1"), family="kernels", lossless=False, meaning="FlashInfer's sampler"),
    Knob(name="VLLM_USE_DEEP_GEMM", kind="choice", choices=("0", "1"), family="kernels", lossless=False, meaning="DeepGEMM kernels"),
    Knob(name="VLLM_BATCH_INVARIANT", kind="choice", choices=("0", "1"), family="kernels", lossless=False, meaning="outputs that don't depend on the batch"),
    Knob(name="VLLM_V1_OUTPUT_PROC_CHUNK_SIZE", kind="int", minimum=1, maximum=65536, family="scheduling", lossless=True, meaning="outputs handled at once in the API server"),
    Knob(name="VLLM_ALLOW_LONG_MAX_MODEL_LEN", kind="choice", choices=("0", "1"), family="memory", lossless=False, access="user", meaning="contexts beyond the model's own"),
    Knob(name="VLLM_LOGGING_LEVEL", kind="choice", choices=("DEBUG", "INFO"), family="kernels", lossless=True, access="user", meaning="of the engine's log"),
    Knob(name="NCCL_ALGO", kind="str", family="parallelism", lossless=True, meaning="collective algorithm"),
    Knob(name="NCCL_PROTO", kind="str", family="parallelism", lossless=True, meaning="collective protocol"),
    Knob(name="NCCL_P2P_DISABLE", kind="choice", choices=("0", "1"), family="parallelism", lossless=True, meaning="no direct copies between devices"),
)  # fmt: skip


@cache
def frozen_schema() -> dict[str, Any]:
    """The schema of vLLM 0.32.0 as it was dumped from the engine, for machines without it."""
    return json.loads(resources.files(__name__.rpartition(".")[0]).joinpath("vllm-0.32.json").read_text(encoding="utf-8"))


def vllm_catalogue(schema: dict[str, Any] | None = None) -> Catalogue:
    """`schema`: `{"version": str, "flags": [{name, option, off, kind, many, choices, default, group, deprecated}, ...]}`, as `serving.schema` dumps it."""
    schema = schema or frozen_schema()
    curated = {knob.name: knob for knob in CURATED}
    knobs: dict[str, Knob] = {}
    for flag in schema["flags"]:
        name = str(flag["name"])
        known = curated.get(name)
        knobs[name] = _merge(known, flag) if known else _unknown(flag)
    if "max_num_seqs" not in knobs:
        raise BadInput("schema", sorted(knobs)[:5], "the argument schema of a vLLM server")
    gone = {name: why for name, why in _GONE.items() if name not in knobs}
    return Catalogue("vllm", str(schema["version"]), knobs, variables={knob.name: knob for knob in _VARIABLES}, gone=gone, rules=RULES)


def _merge(known: Knob, flag: dict[str, Any]) -> Knob:
    """Ours, with the installed engine's spelling, choices and default."""
    choices = tuple(flag["choices"])
    kind = "choice" if choices and known.kind in ("str", "choice") else known.kind
    changes = {"kind": kind, "choices": choices if kind == "choice" else (), "default": flag["default"], "option": flag["option"], "off": flag["off"],
               "access": _access(known.name, known.access), "no_effect": flag.get("deprecated", "")}  # fmt: skip
    if known.name in ("enable_chunked_prefill", "enable_prefix_caching") and flag["default"] is None:
        changes["default"] = known.default  # the engine turns both on for models that generate (0.30 to 0.33)
    return Knob.model_validate(known.model_dump() | changes)


def _unknown(flag: dict[str, Any]) -> Knob:
    kind: KnobKind = "str" if flag["many"] else flag["kind"]
    default: Scalar | None = flag["default"]
    return Knob(name=flag["name"], kind="choice" if flag["choices"] and not flag["many"] else kind, choices=tuple(flag["choices"]), default=default,
                family=_FAMILIES.get(flag["group"], "kernels"), lossless=False, access=_access(flag["name"]), no_effect=flag.get("deprecated", ""),
                option=flag["option"], off=flag["off"], many=flag["many"], meaning=flag.get("help", ""))  # fmt: skip


def _access(name: str, otherwise: Access = "tunable") -> Access:
    return "reserved" if name in _RESERVED else "user" if name in _USER_ONLY else otherwise
