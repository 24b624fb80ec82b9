"""What something will cost, before it is started."""

from __future__ import annotations

import math

from ..contract.endpoint import Endpoint
from .measured import Measured
from .policy import SHORT
from .views import Budget, Estimate

STEPS = 9
"""Ladder steps of a typical walk: four that must be visited, and the search."""
LAUNCH_S = {"sim": 2.0, "vllm": 90.0, "sglang": 90.0}
"""Wall seconds of a launch and a stop, before one has been measured."""


def run_walls(endpoint: Endpoint, measured: Measured | None) -> tuple[float, float]:
    """(wall seconds, replay wall seconds) of one run: as measured, else from the window and a typical number of steps (half of the drain is used)."""
    if measured is not None:
        return measured.wall_s, measured.replay_s
    m = endpoint.measurement
    if m.mode == "virtual":
        return 1.0, 1.0
    steps = len(m.rates) if m.rates else STEPS
    replay = steps * (m.warmup_s + m.window_s + m.drain_s / 2) / m.clock
    return replay + LAUNCH_S[endpoint.engine.kind], replay


def baseline_cost(endpoint: Endpoint, budget: Budget) -> Estimate:
    """Pilot and noise floor."""
    pilot = 0.0 if endpoint.measurement.rates else SHORT
    return _estimate(endpoint, budget, None, endpoint.measurement.floor_runs, pilot)


def experiment_cost(endpoint: Endpoint, budget: Budget, measured: Measured | None, keep_back: int = 0) -> Estimate:
    """Screen and the fewest pairs; futile ones end sooner, close ones go on to `max_pairs`. `keep_back`: runs that must stay affordable."""
    return _estimate(endpoint, budget, measured, 2 * endpoint.measurement.min_pairs, 2.0 if endpoint.measurement.screen == "pair" else 0.0, keep_back)


def _estimate(endpoint: Endpoint, budget: Budget, measured: Measured | None, full: int, short: float, keep_back: int = 0) -> Estimate:
    wall, replay = run_walls(endpoint, measured)
    launches = full + math.ceil(short)
    wall_s, replay_s = wall * (full + short), replay * (full + short)
    kept_wall, kept_replay = keep_back * wall, keep_back * replay
    fits = (
        launches + keep_back <= budget.launches_limit - budget.launches
        and replay_s + kept_replay <= budget.replay_s_limit - budget.replay_s
        and wall_s + kept_wall <= budget.wall_s_limit - budget.wall_s
    )
    text = f"about {launches} launches and {wall_s:.0f} s, of which {replay_s:.0f} s of replay"
    kept = f" beside the {keep_back} launches kept back for the final stack" if keep_back else ""
    return Estimate(launches=launches, replay_s=replay_s, wall_s=wall_s, affordable=fits, text=text if fits else f"{text}: more than the budget has left{kept}")
