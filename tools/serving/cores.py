"""Which processor cores the engine gets, and which the measuring client: never the same where there are two."""

from __future__ import annotations

import os

from ..contract.endpoint import Endpoint
from ..contract.errors import BadInput


def split_cores(endpoint: Endpoint) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(engine's cores, client's cores). On one core both are the same: `shared(...)` says what that means. Raises `BadInput` for cores that aren't there."""
    here = available()
    wanted = endpoint.engine.cores
    if wanted is not None:
        if not wanted or set(wanted) - set(here):
            raise BadInput("engine.cores", list(wanted), f"some of the cores that this process may use: {', '.join(map(str, here))}")
        rest = tuple(core for core in here if core not in wanted)
        return tuple(sorted(set(wanted))), rest[:1] or here[:1]
    return (here[1:], here[:1]) if len(here) > 1 else (here, here)


def shared(engine: tuple[int, ...], client: tuple[int, ...]) -> str:
    """What to tell the user where engine and client share a core; empty: they don't."""
    both = sorted(set(engine) & set(client))
    return f"engine and client share core {', '.join(map(str, both))}: the client is a bottleneck beside the engine, figures are lower bounds" if both else ""


def available() -> tuple[int, ...]:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))
