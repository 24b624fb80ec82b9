"""The registry of observables: what a check, a prediction or a guardrail may name. Nothing else can be named.

Forms:
- a plain name (`preemptions`): one figure a run;
- a name at a load (`ttft_p99_s@1.0`): the figure at that multiple of the series' reference capacity;
- `config.<knob>`: the effective value of an engine argument as the running server reports it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from .errors import BadInput

LOADS = ("0.8", "1.0", "1.2", "1.5")
"""Multiples of the series' reference capacity at which figures are read; 1.5 is the burst."""
Better = Literal["higher", "lower", "neither"]
Source = Literal["ladder", "rows", "counters", "config", "telemetry", "probe", "launch"]


@dataclass(frozen=True)
class Observable:
    """`at_load`: the name is used with `@LOAD`. `noisy`: checks on it use an interval, not the bare figure."""

    name: str
    unit: str
    better: Better
    source: Source
    meaning: str
    at_load: bool = False
    noisy: bool = True


def _latencies() -> list[Observable]:
    names = {"ttft": "time to first token from the scheduled time", "tpot": "time per output token after the first", "e2e": "end to end from the scheduled time"}
    statistics = {"p50": "median", "p90": "90th percentile", "p99": "99th percentile", "mean": "mean"}
    return [Observable(f"{n}_{s}_s", "s", "lower", "rows", f"{statistics[s]} of {names[n]}, successful requests", at_load=True) for n in names for s in statistics]


_ALL = [
    Observable("capacity_rps_per_gpu", "requests/s/GPU", "higher", "ladder", "highest offered rate at which the SLA's attainment holds, by interpolation on the ladder"),
    Observable("goodput_rps", "requests/s", "higher", "rows", "requests that succeed inside the SLA", at_load=True),
    Observable("attainment", "share", "higher", "rows", "scheduled requests that succeed inside the SLA", at_load=True),
    Observable("success_share", "share", "higher", "rows", "scheduled requests that succeed at all", at_load=True),
    Observable("error_share", "share", "lower", "rows", "scheduled requests that fail, time out or stay unfinished", at_load=True),
    Observable("output_tokens_per_s", "tokens/s", "higher", "rows", "output tokens of successful requests", at_load=True),
    Observable("output_tokens_mean", "tokens", "neither", "rows", "mean answer length of successful requests", at_load=True),
    *_latencies(),
    Observable("cached_token_share", "share", "higher", "rows", "prompt tokens that the server reports as cached, whole run"),
    Observable("prefix_hit_share", "share", "higher", "counters", "prefix cache hits over queries, in tokens, whole run"),
    Observable("preemptions", "count", "lower", "counters", "preemptions, whole run"),
    Observable("kv_usage_max", "share", "neither", "counters", "highest KV-cache usage seen while scraping"),
    Observable("running_mean", "requests", "neither", "counters", "mean running requests while scraping"),
    Observable("running_max", "requests", "neither", "counters", "most running requests seen while scraping"),
    Observable("waiting_mean", "requests", "lower", "counters", "mean waiting requests while scraping"),
    Observable("waiting_max", "requests", "lower", "counters", "most waiting requests seen while scraping"),
    Observable("acceptance_length", "tokens", "higher", "counters", "mean accepted tokens a verification step, the bonus token included"),
    Observable("kv_blocks", "blocks", "higher", "config", "KV-cache blocks of the running server", noisy=False),
    Observable("memory_headroom_share", "share", "higher", "telemetry", "device memory free at the run's peak"),
    Observable("launch_s", "s", "lower", "launch", "wall seconds from launch to healthy"),
]
REGISTRY: dict[str, Observable] = {o.name: o for o in _ALL}
_CONFIG = re.compile(r"^config\.[a-z][a-z0-9_]{0,63}$")


def resolve(name: str) -> Observable:
    """The observable that `name` (with its load) stands for. Raises `BadInput` with the nearest names."""
    if _CONFIG.match(name):
        return Observable(name, "value", "neither", "config", "effective engine argument", noisy=False)
    base, at, load = name.partition("@")
    known = REGISTRY.get(base)
    if known is None:
        from difflib import get_close_matches

        near = get_close_matches(base, REGISTRY, n=3) or sorted(REGISTRY)[:5]
        raise BadInput("observable", name, f"a registered observable such as {', '.join(near)}, or config.<knob>")
    if known.at_load != bool(at) or (at and load not in LOADS):
        raise BadInput("observable", name, f"{base}@LOAD with LOAD one of {', '.join(LOADS)}" if known.at_load else f"{base} without a load")
    return known
