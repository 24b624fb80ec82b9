"""Teacher-forced log-probabilities: what the simulated model thinks of tokens that it is given.

A function of model and context, so that equal engines agree; lossy precision shifts it by an error of its own size, and the order of summation, which differs
from batch to batch and launch to launch, by about a thousandth, as on real hardware.
"""

from __future__ import annotations

import math
import random
from hashlib import blake2b

from .config import SimConfig

SHIFT = {"quantization": {"none": 0.0, "fp8": 0.03, "awq": 0.08, "gptq": 0.09}, "kv_cache_dtype": {"auto": 0.0, "fp8": 0.012, "fp8_e4m3": 0.012}, "dtype": {"auto": 0.0, "bfloat16": 0.0, "float16": 0.004}}
"""Mean absolute shift in nats by flag and value; assumed, in the order in which published evaluations rank them."""
_SUMMATION = 0.001
_WIDTH = 4 * 16
"""Bytes of context (16 tokens) that one log-probability depends on."""
_TO_MEAN = math.sqrt(math.pi / 2)
"""Standard deviation of a normal variable whose mean absolute value is 1."""


def lossy(config: SimConfig) -> str:
    """The precision as one word; empty where it is the model's own."""
    return ",".join(f"{name}={config.args[name]}" for name in SHIFT if SHIFT[name].get(str(config.args[name]), 0.0))


def prompt_logprobs(prompt: bytes, config: SimConfig, noise: random.Random) -> list[float]:
    """Natural logarithms for all tokens of a prompt (ids packed in 4 bytes each) but the first. `noise` is the batch's, different at every call."""
    model = config.model.name.encode()
    shifts = [(f"{name}={config.args[name]}".encode(), SHIFT[name].get(str(config.args[name]), 0.0) * _TO_MEAN) for name in SHIFT]
    result: list[float] = []
    for end in range(8, len(prompt) + 1, 4):
        context = prompt[max(0, end - _WIDTH) : end]
        value = -0.05 - 2.2 * _uniform(context, model) ** 3 * 3
        for key, size in shifts:
            if size:
                value += size * _normal(context, model + key)
        result.append(min(-1e-6, value + _SUMMATION * _TO_MEAN * noise.gauss(0, 1)))
    return result


def _uniform(context: bytes, key: bytes) -> float:
    return int.from_bytes(blake2b(context, digest_size=7, key=key[:64]).digest(), "little") / (1 << 56)


def _normal(context: bytes, key: bytes) -> float:
    """Box and Muller's transform of two hashed uniforms."""
    return math.sqrt(-2 * math.log(1 - _uniform(context, key))) * math.cos(2 * math.pi * _uniform(context, key + b"#"))
