"""The embedded engine's figures as Prometheus text, under vLLM's names."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .clocked import ClockedEngine
    from .request import Request

_TTFT = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0)
_TPOT = (0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
_E2E = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0)


class LogHistogram:
    """Times in buckets 12 % wide from a microsecond up: any quantile within 6 %, however many there are."""

    _STEP = math.log(1.12)

    def __init__(self) -> None:
        self.counts = [0] * 192
        self.largest = 0.0

    def add(self, seconds: float) -> None:
        index = int(math.log(seconds * 1e6) / self._STEP) + 1 if seconds > 1e-6 else 0
        self.counts[min(index, 191)] += 1
        self.largest = max(self.largest, seconds)

    def quantile(self, share: float) -> float:
        """0 when nothing was added."""
        left = share * sum(self.counts)
        for index, count in enumerate(self.counts):
            left -= count
            if count and left <= 0:
                return min(self.largest, 1e-6 * math.exp(self._STEP * (index - 0.5))) if index else 0.0
        return 0.0


class Histogram:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str) -> list[str]:
        lines, count = [f"# TYPE {name} histogram"], 0
        for bound, number in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            count += number
            lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {count}')
        return [*lines, f"{name}_count{{{labels}}} {count}", f"{name}_sum{{{labels}}} {self.total:.9g}"]


class Metrics:
    """What is counted beside the scheduler's own counters."""

    def __init__(self) -> None:
        self.steps = 0
        self.step_tokens = 0
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.generation_tokens = 0
        self.finished = {"length": 0, "stop": 0, "abort": 0}
        self.ttft, self.tpot, self.e2e = Histogram(_TTFT), Histogram(_TPOT), Histogram(_E2E)

    def complete(self, request: Request, natural: bool) -> None:
        self.finished["stop" if natural else "length"] += 1
        self.prompt_tokens += request.prompt
        self.cached_tokens += max(0, request.cached)
        self.generation_tokens += request.output
        self.ttft.add(request.first - request.arrival)
        self.e2e.add(request.last - request.arrival)
        if request.output > 1:
            self.tpot.add((request.last - request.first) / (request.output - 1))


def render(engine: ClockedEngine, model: str) -> bytes:
    """Prometheus text format 0.0.4."""
    scheduler, metrics, config = engine.scheduler, engine.metrics, engine.config
    labels = f'engine="0",model_name="{model}"'
    gauges = {
        "vllm:num_requests_running": len(scheduler.running),
        "vllm:num_requests_waiting": engine.waiting,
        "vllm:kv_cache_usage_perc": scheduler.pool.usage,
        "sim:clock_lag_seconds": engine.lag.quantile(0.99),
        "sim:clock_lag_max_seconds": engine.lag.largest,
        "sim:launch_speed": engine.cost.speed,
    }
    running = [request for request in scheduler.running if request.output]
    counters = {
        "vllm:num_preemptions_total": scheduler.preemptions,
        "vllm:prefix_cache_queries_total": scheduler.queries,
        "vllm:prefix_cache_hits_total": scheduler.hits,
        "vllm:prompt_tokens_total": metrics.prompt_tokens + sum(request.prompt for request in running),
        "vllm:prompt_tokens_cached_total": metrics.cached_tokens + sum(request.cached for request in running),
        "vllm:generation_tokens_total": metrics.generation_tokens + sum(request.output for request in running),
        "sim:steps_total": metrics.steps,
        "sim:computed_tokens_total": metrics.step_tokens,
    }
    lines: list[str] = []
    for kind, figures in (("gauge", gauges), ("counter", counters)):
        for name, value in figures.items():
            lines += [f"# TYPE {name} {kind}", f"{name}{{{labels}}} {float(value):.9g}"]
    lines.append("# TYPE sim:clock_lag_by_reset_seconds gauge")
    lines += [f'sim:clock_lag_by_reset_seconds{{{labels},reset="{number}"}} {lag.quantile(0.99):.9g}' for number, lag in enumerate(engine.lags)]
    lines.append("# TYPE vllm:request_success_total counter")
    lines += [f'vllm:request_success_total{{{labels},finished_reason="{reason}"}} {number}' for reason, number in metrics.finished.items()]
    args = config.args
    info = {
        "block_size": args["block_size"],
        "cache_dtype": args["kv_cache_dtype"],
        "enable_prefix_caching": args["enable_prefix_caching"],
        "gpu_memory_utilization": args["gpu_memory_utilization"],
        "num_gpu_blocks": config.blocks,
    }
    pairs = ",".join(f'{name}="{value}"' for name, value in info.items())
    lines += ["# TYPE vllm:cache_config_info gauge", f'vllm:cache_config_info{{engine="0",{pairs}}} 1']
    for name, histogram in (
        ("vllm:time_to_first_token_seconds", metrics.ttft),
        ("vllm:request_time_per_output_token_seconds", metrics.tpot),
        ("vllm:e2e_request_latency_seconds", metrics.e2e),
    ):
        lines += histogram.lines(name, labels)
    return ("\n".join(lines) + "\n").encode()
