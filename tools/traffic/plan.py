"""Which request leaves when, in one step of the ladder. The same for both arms, always."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..contract.endpoint import CachePolicy
from .workload import Window, Workload

WARM_SHARE, WARM_MOST = 0.1, 256


@dataclass(frozen=True)
class Schedule:
    """One step. Arrays of length n, by ascending time."""

    scheduled_s: NDArray[np.float64]
    """Server seconds from the step's start."""
    request: NDArray[np.int32]
    """Index in the workload."""
    turn: NDArray[np.int32]
    """0: the request as frozen; k: as of the k-th repetition of the window, its prompt made afresh where it is of token ids."""
    warm: range
    """Requests that fill the cache before the step (policy `warmed`), not measured."""
    repeats: int
    """Passes over the trace's window: above 1 it was too short for this rate."""


def planned_requests(rate: float, warmup_s: float, window_s: float) -> int:
    """How many requests a step has: the offered rate is met exactly over warm-up and window together."""
    return max(1, round(rate * (warmup_s + window_s)))


def plan_step(workload: Workload, window: Window, rate: float, warmup_s: float, window_s: float, policy: CachePolicy = "cold") -> Schedule:
    """The window's arrivals from its first on, as many as the step needs, with their times scaled as one to the offered mean rate.

    Gaps keep their proportions, so bursts stay bursts. A window with too few requests is repeated, its mean gap between the passes.
    """
    span = workload.window(window)
    warm = span[: min(WARM_MOST, int(len(span) * WARM_SHARE))] if policy == "warmed" else span[:0]
    used = span[len(warm) :]
    count = planned_requests(rate, warmup_s, window_s)
    at = workload.at_s[used.start : used.stop] - workload.at_s[used.start]
    gap = at[-1] / (len(used) - 1) if len(used) > 1 and at[-1] > 0 else 1.0
    # Two more passes than needed, so that there is a later arrival to scale by: the first one after the step's last.
    passes = count // len(used) + 2
    times = (np.arange(passes)[:, None] * (at[-1] + gap) + at[None, :]).ravel()
    after = times[count:][times[count:] > times[count - 1]][0]
    index = np.arange(count)
    return Schedule(
        scheduled_s=times[:count] * ((warmup_s + window_s) / after),
        request=(used.start + index % len(used)).astype(np.int32),
        turn=(index // len(used)).astype(np.int32),
        warm=warm,
        repeats=-(-count // len(used)),
    )
