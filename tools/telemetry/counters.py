"""Engine counters, mapped to observables of source `counters`. vLLM's names; the embedded engine uses them too."""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field

from ..contract.errors import BadInput, EngineFailure
from .http import request
from .prometheus import Sample, parse

_GAUGES = {"vllm:num_requests_running": "running", "vllm:num_requests_waiting": "waiting"}
_COUNTERS = {
    "vllm:prefix_cache_queries_total": "queries",
    "vllm:prefix_cache_hits_total": "hits",
    "vllm:num_preemptions_total": "preemptions",
    "vllm:spec_decode_num_drafts_total": "drafts",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted",
}
_USAGE, _CACHE, _LAG, _LAGS = "vllm:kv_cache_usage_perc", "vllm:cache_config_info", "sim:clock_lag_seconds", "sim:clock_lag_by_reset_seconds"
WANTED = (*_GAUGES, *_COUNTERS, _USAGE, _CACHE, _LAG, _LAGS)


@dataclass
class Reading:
    """One scrape. `gauges` and `counters` are summed over the engines behind one address; usage is the fullest's."""

    at: float
    """`time.monotonic()`."""
    gauges: dict[str, float] = field(default_factory=dict)
    counters: dict[str, float] = field(default_factory=dict)
    kv_usage: float | None = None
    kv_blocks: float | None = None
    clock_lag_s: float | None = None
    clock_lags_s: tuple[float, ...] = ()
    """By cache reset since the launch; the first is what was before any."""


def read(samples: list[Sample], at: float) -> Reading:
    gauges: dict[str, float] = defaultdict(float)
    counters: dict[str, float] = defaultdict(float)
    lags: dict[int, float] = {}
    reading = Reading(at=at)
    for sample in samples:
        if not math.isfinite(sample.value):
            continue
        if sample.name in _GAUGES:
            gauges[_GAUGES[sample.name]] += sample.value
        elif sample.name in _COUNTERS:
            counters[_COUNTERS[sample.name]] += sample.value
        elif sample.name == _USAGE:
            reading.kv_usage = max(reading.kv_usage or 0.0, sample.value)
        elif sample.name == _CACHE and sample.labels.get("num_gpu_blocks", "").isdigit():
            reading.kv_blocks = (reading.kv_blocks or 0.0) + float(sample.labels["num_gpu_blocks"])
        elif sample.name == _LAG and sample.labels.get("quantile", "0.99") == "0.99":
            reading.clock_lag_s = max(reading.clock_lag_s or 0.0, sample.value)
        elif sample.name == _LAGS and sample.labels.get("reset", "").isdigit():
            lags[int(sample.labels["reset"])] = sample.value
    reading.gauges, reading.counters = dict(gauges), dict(counters)
    reading.clock_lags_s = tuple(lags[number] for number in sorted(lags))
    return reading


class Scraper:
    """Reads `/metrics` of a server twice a second in a thread, from `start` to `stop`. A server that doesn't answer leaves a gap, and is counted."""

    def __init__(self, url: str, *, interval_s: float = 0.5) -> None:
        self.url, self.interval_s = url, interval_s
        self.readings: list[Reading] = []
        self.missed = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scraper", daemon=True)

    def start(self) -> Scraper:
        self.scrape()
        self._thread.start()
        return self

    def stop(self) -> None:
        """End the thread; the last reading is taken now, so that counters span the whole run."""
        if self._thread.is_alive():
            self._stop.set()
            self._thread.join()
            self.scrape()

    def scrape(self) -> None:
        try:
            status, body = request(self.url, "/metrics", timeout_s=5)
            samples = parse(body.decode("utf-8", "replace"), WANTED) if status == 200 else []
            if samples:
                self.readings.append(read(samples, time.monotonic()))
                return
        except (EngineFailure, BadInput):
            pass
        self.missed += 1

    def restart(self) -> None:
        """Count from here on: what came before (probes, warming) is left out."""
        self.scrape()
        self.readings = self.readings[-1:]

    def observables(self) -> dict[str, float]:
        """Observables of source `counters` over the readings so far; what the server doesn't tell is absent."""
        return summarise(list(self.readings))

    def clock_lag_s(self) -> float | None:
        """The simulator's own word on how late its steps were (99th percentile, server seconds)."""
        return max((reading.clock_lag_s for reading in self.readings if reading.clock_lag_s is not None), default=None)

    def clock_lags_s(self) -> tuple[float, ...]:
        """The same by stretches between cache resets, the first before any."""
        return next((reading.clock_lags_s for reading in reversed(self.readings) if reading.clock_lags_s), ())

    def _run(self) -> None:
        while not self._stop.wait(self.interval_s):
            self.scrape()


def summarise(readings: list[Reading]) -> dict[str, float]:
    """Figures of a run: counters as last minus first, gauges as mean and maximum over the readings."""
    if not readings:
        return {}
    figures: dict[str, float] = {}
    for name in ("running", "waiting"):
        if values := [reading.gauges[name] for reading in readings if name in reading.gauges]:
            figures |= {f"{name}_mean": sum(values) / len(values), f"{name}_max": max(values)}
    if usage := [reading.kv_usage for reading in readings if reading.kv_usage is not None]:
        figures["kv_usage_max"] = max(usage)
    if readings[-1].kv_blocks is not None:
        figures["kv_blocks"] = readings[-1].kv_blocks
    first, last = readings[0].counters, readings[-1].counters
    grown = {name: value - first.get(name, 0.0) for name, value in last.items()}
    if "preemptions" in grown:
        figures["preemptions"] = grown["preemptions"]
    if grown.get("queries", 0.0) > 0:
        figures["prefix_hit_share"] = grown.get("hits", 0.0) / grown["queries"]
    if grown.get("drafts", 0.0) > 0:
        figures["acceptance_length"] = 1.0 + grown.get("accepted", 0.0) / grown["drafts"]
    return figures
