"""What the cost model knows of hardware and models. Every number's source stands beside it in `profiles.json`."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..contract.errors import BadInput


class HardwareProfile(NamedTuple):
    """One device. The `*_share` figures are the part of the peak that kernels reach, below 1: nothing is faster than the hardware."""

    name: str
    memory_bytes: int
    bandwidth: float
    """Device memory, bytes/s."""
    link: float
    """To the other devices, bytes/s one way."""
    flops: dict[str, float]
    """Peak dense FLOP/s by number format; a format that is absent runs at the bf16 rate."""
    default_tokens: int
    """vLLM's default max_num_batched_tokens on such a device (API server)."""
    default_seqs: int
    gemm_share: float
    attention_share: float
    bandwidth_share: float
    host_step_s: float
    """The engine's own work a step: scheduling, sampling, output. Hidden behind the device by asynchronous scheduling."""
    host_seq_s: float
    """The same, for every sequence in the step."""
    launch_s: float
    eager_layer_s: float
    """Kernel launches of one layer where no graph is replayed."""
    reserve_bytes: float
    """Memory that is neither weights nor activations nor KV."""
    noise_cv: float
    """Coefficient of variation of speed from launch to launch."""
    sources: dict[str, str]


class ModelProfile(NamedTuple):
    """A dense decoder. `max_len` in tokens."""

    name: str
    parameters: int
    layers: int
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    max_len: int
    source: str


@cache
def _data() -> dict[str, dict[str, Any]]:
    return json.loads((Path(__file__).parent / "profiles.json").read_text(encoding="utf-8"))


def names(kind: str) -> list[str]:
    """Names of all profiles; `kind` is "hardware" or "models"."""
    return sorted(_data()[kind])


def hardware(name: str) -> HardwareProfile:
    """Raises `BadInput` naming the known profiles."""
    if name not in _data()["hardware"]:
        raise BadInput("hardware.profile", name, f"one of {', '.join(names('hardware'))}")
    return HardwareProfile(name=name, **_data()["hardware"][name])


def model(name: str) -> ModelProfile:
    """Raises `BadInput` naming the known profiles."""
    if name not in _data()["models"]:
        raise BadInput("model.name", name, f"one of {', '.join(names('models'))}")
    return ModelProfile(name=name, **_data()["models"][name])
