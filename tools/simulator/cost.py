"""How long a step takes: a roofline of its matrix multiplications, its attention and its communication, plus the engine's own work.

    gemm      = max(2 * parameters * tokens / reached FLOP/s, weight bytes / reached bandwidth)
    attention = sum over prefills of max(FLOPs, KV bytes) + the KV bytes that decodes read
    step      = gemm + attention + communication + launches, and the host's work: in its shadow with asynchronous scheduling, after it without
"""

from __future__ import annotations

import math
import random

from .config import SimConfig
from .scheduler import Step


class StepCost:
    """All in seconds of the server. `speed` is this launch's own factor: log-normal with the profile's coefficient of variation, by the launch seed."""

    __slots__ = ("attend", "base", "decode", "hide", "host", "host_seq", "read", "send", "speed", "token", "weights")

    def __init__(self, config: SimConfig, noise_cv: float | None = None) -> None:
        h, m, args = config.hardware, config.model, config.args
        parallel = int(args["tensor_parallel_size"])
        compute = h.flops["fp8"] if args["quantization"] == "fp8" else h.flops["bf16"]
        bandwidth = h.bandwidth * h.bandwidth_share * parallel
        self.token = 2 * m.parameters / (compute * h.gemm_share * parallel)  # a token's multiplications
        self.weights = config.weight_bytes / bandwidth  # all weights once
        self.attend = 4 * m.layers * m.heads * m.head_dim / (h.flops["bf16"] * h.attention_share * parallel)  # one token over one earlier token
        self.read = config.kv_bytes_per_token / bandwidth  # one earlier token's keys and values
        self.decode = max(self.attend, self.read)
        # Two all-reduces a layer; a ring moves 2 (p - 1) / p of the hidden state.
        self.send = 2 * m.layers * (2 * (parallel - 1) / parallel) * m.hidden * 2 / h.link
        # 6 us an all-reduce and device: about what Qwen3-32B's TPOT on H100 at TP 2, 4 and 8 shows (AIConfigurator's published sample, vLLM).
        reduce_latency = 2 * m.layers * 6e-6 * parallel if parallel > 1 else 0.0
        self.base = h.launch_s + reduce_latency + (m.layers * h.eager_layer_s if args["enforce_eager"] else 0.0)
        self.host = h.host_step_s
        self.host_seq = h.host_seq_s / max(1.0, min(4.0, float(args["stream_interval"])))  # output is most of it
        self.hide = bool(args["async_scheduling"])
        cv = h.noise_cv if noise_cv is None else noise_cv
        self.speed = math.exp(math.sqrt(math.log1p(cv * cv)) * random.Random(config.launch_seed).gauss(0, 1)) if cv else 1.0

    def seconds(self, step: Step) -> float:
        """Duration of a step whose requests' `computed` already counts its tokens."""
        attend, read = self.attend, self.read
        tokens = context = 0
        attention = 0.0
        for request, new in step:
            tokens += new
            if new == 1:
                context += request.computed
            else:
                before = request.computed - new
                attention += max(attend * new * (before + 0.5 * (new + 1)), read * request.computed)
        return self._total(tokens, len(step), attention + self.decode * context)

    def _total(self, tokens: int, sequences: int, attention: float) -> float:
        device = max(self.token * tokens, self.weights) + attention + self.send * tokens + self.base
        host = self.host + self.host_seq * sequences
        return self.speed * (max(device, host) if self.hide else device + host)

    def decodes(self, sequences: int, context: int, steps: int) -> float:
        """Duration of `steps` steps in a row that compute one token for each of the same `sequences`; `context` is what they attend to in the first, summed.

        The step grows linearly with its context, so that the sum is closed; where the host's work is longer, it counts instead.
        """
        host = self.host + self.host_seq * sequences
        first = self._total(sequences, sequences, self.decode * context) / self.speed
        growth = self.decode * sequences
        waiting = 0
        if self.hide and first <= host:
            device = max(self.token * sequences, self.weights) + self.decode * context + self.send * sequences + self.base
            waiting = min(steps, math.ceil((host - device) / growth)) if growth > 0 else steps
            first = device + growth * waiting
        linear = steps - waiting
        return self.speed * (waiting * host + linear * first + growth * linear * (linear - 1) / 2)
