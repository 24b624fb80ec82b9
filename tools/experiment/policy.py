"""From an endpoint file to the policy by which every run of a series is measured."""

from __future__ import annotations

from ..contract.endpoint import Endpoint
from ..contract.series import MeasurementPolicy

SHORT = 0.5
"""The pilot and the virtual screen replay this share of the window at each step."""


def at_clock(endpoint: Endpoint, clock: float) -> Endpoint:
    """The endpoint measured at another clock (sim only)."""
    return endpoint.model_copy(update={"measurement": endpoint.measurement.model_copy(update={"clock": clock})})


def policy_of(endpoint: Endpoint, *, short: bool = False, mode: str | None = None) -> MeasurementPolicy:
    """`short`: for the pilot and the virtual screen, which are never evidence. `mode` overrides the endpoint's (a virtual screen)."""
    m = endpoint.measurement
    return MeasurementPolicy(
        mode=mode or m.mode,
        clock=m.clock,
        window_s=m.window_s * (SHORT if short else 1.0),
        warmup_s=m.warmup_s,
        drain_s=m.drain_s,
        cache_policy=m.cache_policy,
        climb=m.rates is None,
    )
