"""The embedded engine's flags, named as vLLM names them, and what follows from them for a model on its hardware."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..contract.errors import BadInput, EngineFailure
from .profiles import HardwareProfile, ModelProfile, hardware, model

if TYPE_CHECKING:
    from ..contract.base import Scalar
    from ..contract.configuration import Configuration

BUILD = "sim-1"
"""Version of what the embedded engine does; raised when its schedule or its costs change."""

FLAGS: dict[str, tuple[type | tuple[str, ...], bool | int | float | str | None]] = {
    "max_num_seqs": (int, None),
    "max_num_batched_tokens": (int, None),
    "max_model_len": (int, None),
    "enable_prefix_caching": (bool, True),
    "enable_chunked_prefill": (bool, True),
    "gpu_memory_utilization": (float, 0.92),
    "num_gpu_blocks_override": (int, None),
    "block_size": (int, 16),
    "dtype": (("auto", "bfloat16", "float16"), "auto"),
    "quantization": (("none", "fp8", "awq", "gptq"), "none"),
    "kv_cache_dtype": (("auto", "fp8", "fp8_e4m3"), "auto"),
    "scheduling_policy": (("fcfs", "priority"), "fcfs"),
    "long_prefill_token_threshold": (int, 0),
    "scheduler_reserve_full_isl": (bool, True),
    "watermark": (float, 0.0),
    "async_scheduling": (bool, True),
    "enforce_eager": (bool, False),
    "stream_interval": (int, 1),
    "tensor_parallel_size": (int, None),
    "disable_cascade_attn": (bool, True),
    "seed": (int, 0),
}
"""Flag -> type (or choices) and default; None: from the model, the hardware or the other flags."""
_LOWEST = {"gpu_memory_utilization": 0.01, "long_prefill_token_threshold": 0, "watermark": 0, "seed": 0, "num_gpu_blocks_override": 2}
WEIGHT_BYTES = {"none": 2.0, "fp8": 1.0, "awq": 0.56, "gptq": 0.56}
"""Bytes a parameter; 4-bit formats with group scales of 128 (0.5 + 4/64)."""


@dataclass(frozen=True, slots=True)
class SimConfig:
    """A checked configuration. `args` holds every flag's effective value."""

    model: ModelProfile
    hardware: HardwareProfile
    gpus: int
    launch_seed: int
    args: dict[str, bool | int | float | str]
    blocks: int
    """KV blocks, the null block included."""

    @classmethod
    def from_args(cls, configuration: Configuration, model: str, hardware: str, gpus: int, seed: int) -> SimConfig:
        """`configuration.args` by flag name with underscores. Raises `BadInput` for a bad flag, `EngineFailure` where it doesn't fit in memory."""
        return resolve(dict(configuration.args), model, hardware, gpus, seed)

    def effective(self) -> dict[str, bool | int | float | str]:
        """Every flag by its name with underscores, and `num_gpu_blocks`."""
        return {**self.args, "num_gpu_blocks": self.blocks}

    @property
    def kv_bytes_per_token(self) -> float:
        """Of all devices together."""
        m = self.model
        return 2 * m.layers * m.kv_heads * m.head_dim * (1 if str(self.args["kv_cache_dtype"]).startswith("fp8") else 2)

    @property
    def weight_bytes(self) -> float:
        return self.model.parameters * WEIGHT_BYTES[str(self.args["quantization"])]


def resolve(given: dict[str, Scalar], model_name: str, hardware_name: str, gpus: int, launch_seed: int) -> SimConfig:
    """Check flags, fill in defaults as vLLM does, size the KV cache. Raises as `SimConfig.from_args`."""
    device, profile = hardware(hardware_name), model(model_name)
    args = {name: default for name, (_, default) in FLAGS.items()} | {name: checked(name, value) for name, value in given.items()}
    if args["max_model_len"] is None:
        args["max_model_len"] = profile.max_len
    elif int(args["max_model_len"]) > profile.max_len:
        raise BadInput("max_model_len", args["max_model_len"], f"at most {profile.max_len}, the length of {profile.name}")
    if args["max_num_batched_tokens"] is None:
        args["max_num_batched_tokens"] = device.default_tokens if args["enable_chunked_prefill"] else max(device.default_tokens, int(args["max_model_len"] or 0))
    if args["max_num_seqs"] is None:
        args["max_num_seqs"] = min(device.default_seqs, int(args["max_num_batched_tokens"] or 0))
    if args["tensor_parallel_size"] is None:
        args["tensor_parallel_size"] = gpus
    filled = {name: value for name, value in args.items() if value is not None}
    _consistent(filled, profile, device, gpus)
    partial = SimConfig(profile, device, gpus, launch_seed, filled, 0)
    blocks = int(filled.get("num_gpu_blocks_override", 0)) or _blocks(partial)
    one = -(-int(filled["max_model_len"]) // int(filled["block_size"])) + 1
    if blocks < one:
        room = max(0, blocks - 1) * int(filled["block_size"])
        raise EngineFailure(
            "out_of_memory", f"out of memory: the KV cache has room for {room} tokens, max_model_len is {filled['max_model_len']}", "raise gpu_memory_utilization, or lower max_model_len"
        )
    return SimConfig(profile, device, gpus, launch_seed, filled, blocks)


def checked(name: str, value: object) -> bool | int | float | str:
    """One flag's value in its type; text is parsed. Raises `BadInput`."""
    if name not in FLAGS:
        near = difflib.get_close_matches(name, FLAGS, n=1)
        raise BadInput(f"--{name.replace('_', '-')}", value, f"a flag of the embedded engine{', such as --' + near[0].replace('_', '-') if near else ''}")
    kind, _ = FLAGS[name]
    field = "--" + name.replace("_", "-")
    if isinstance(kind, tuple):
        if str(value) not in kind:
            raise BadInput(field, value, f"one of {', '.join(kind)}")
        return str(value)
    if kind is bool:
        text = str(value).lower()
        if text not in ("true", "false"):
            raise BadInput(field, value, "true or false")
        return text == "true"
    try:
        number = kind(str(value)) if not isinstance(value, bool) else None
    except ValueError:
        number = None
    if number is None or not isinstance(number, (int, float)) or not number >= _LOWEST.get(name, 1) or number == float("inf"):
        raise BadInput(field, value, f"{'a whole number' if kind is int else 'a number'} of at least {_LOWEST.get(name, 1)}")
    return number


def _consistent(args: dict[str, bool | int | float | str], profile: ModelProfile, device: HardwareProfile, gpus: int) -> None:
    if float(args["gpu_memory_utilization"]) > 1:
        raise BadInput("--gpu-memory-utilization", args["gpu_memory_utilization"], "a share between 0.01 and 1")
    if float(args["watermark"]) >= 1:
        raise BadInput("--watermark", args["watermark"], "a share below 1")
    if int(args["max_num_seqs"]) > int(args["max_num_batched_tokens"]):
        raise BadInput("--max-num-batched-tokens", args["max_num_batched_tokens"], f"at least max_num_seqs ({args['max_num_seqs']})")
    if not args["enable_chunked_prefill"] and int(args["max_num_batched_tokens"]) < int(args["max_model_len"]):
        raise BadInput("--max-num-batched-tokens", args["max_num_batched_tokens"], f"at least max_model_len ({args['max_model_len']}) without chunked prefill")
    if int(args["block_size"]) not in (1, 8, 16, 32, 64, 128):
        raise BadInput("--block-size", args["block_size"], "one of 1, 8, 16, 32, 64, 128")
    parallel = int(args["tensor_parallel_size"])
    if parallel > gpus or profile.heads % parallel:
        raise BadInput("--tensor-parallel-size", parallel, f"at most {gpus} device(s), and a divisor of {profile.heads} attention heads")
    if args["quantization"] == "fp8" and "fp8" not in device.flops:
        raise BadInput("--quantization", "fp8", f"a format that {device.name} computes in")


def _blocks(config: SimConfig) -> int:
    """Blocks that fit beside weights and the activations of the largest step, as vLLM's profile run finds them. Devices beyond `tensor_parallel_size` stay idle, as in vLLM."""
    args, m = config.args, config.model
    parallel = int(args["tensor_parallel_size"])
    tokens, seqs = int(args["max_num_batched_tokens"]), int(args["max_num_seqs"])
    activations = tokens * 2 * (4 * m.hidden + 3 * m.intermediate / parallel) + seqs * m.vocab * 4 * 2 / parallel
    room = config.hardware.memory_bytes * float(args["gpu_memory_utilization"]) - config.hardware.reserve_bytes - config.weight_bytes / parallel - activations
    if room <= 0:
        raise EngineFailure(
            "out_of_memory",
            f"out of memory: weights of {config.weight_bytes / parallel / 1e9:.1f} GB and activations of {activations / 1e9:.1f} GB leave nothing of {config.hardware.memory_bytes / 1e9:.1f} GB",
            "more devices, a larger gpu_memory_utilization or a smaller max_num_batched_tokens",
        )
    return int(room // (config.kv_bytes_per_token / parallel * int(args["block_size"])))
