"""How often campaigns keep what isn't there, and find what is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._campaigns import Figures, Setting

NAME = "error-rates"
SUMMARY = "False keeps, phantom gain, power and runs of whole simulated campaigns, by world"


@dataclass(frozen=True)
class Row:
    setting: Setting
    must: str
    holds: Callable[[Figures], bool]


def table() -> list[Row]:
    """The settings and what must hold in each."""
    from ._campaigns import WORLDS, Setting

    rows = []
    for cv, worth, pairs in ((0.01, 0.05, 8), (0.03, 0.10, 12), (0.07, 0.25, 12)):
        for world in WORLDS:
            setting = Setting(world, cv, 20, (), worth, pairs)
            if world == "candidates noisier x3":
                rows.append(Row(setting, "(shown only)", lambda _: True))
            elif cv == 0.03 and world in WORLDS[:3]:
                rows.append(Row(setting, "false <= 5 %, phantom < 0.1 %", _no_phantoms))
            else:
                rows.append(Row(setting, "false <= 5 %", _few_false))
    real = Setting("independent", 0.01, 18, (0.05, 0.05), 0.05, 8)
    rows.append(Row(real, "power >= .95, runs <= 66", lambda f: f.power >= 0.95 and f.mean_runs <= 66))
    real = Setting("drifting", 0.01, 18, (0.05, 0.05), 0.05, 8)
    rows.append(Row(real, "power >= .95, runs <= 70", lambda f: f.power >= 0.95 and f.mean_runs <= 70))
    real = Setting("independent", 0.03, 18, (0.10, 0.10), 0.10, 12)
    rows.append(Row(real, "power >= .93, runs <= 100", lambda f: f.power >= 0.93 and f.mean_runs <= 100))
    return rows


def _few_false(figures: Figures) -> bool:
    return figures.false_share <= 0.05


def _no_phantoms(figures: Figures) -> bool:
    return _few_false(figures) and figures.phantom / figures.campaigns < 0.001


def run(options: list[str]) -> dict[str, Any]:
    """Options: `--campaigns N` a setting (default 400), `--seed N`."""
    import numpy as np

    from ...tools.judgement import NoiseFloor, minimum_detectable_effect
    from ._campaigns import ALPHA, Figures, campaign

    parser = argparse.ArgumentParser(prog=f"servewright bench {NAME}")
    parser.add_argument("--campaigns", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(options)
    rows = []
    for number, row in enumerate(table()):
        figures, random = Figures(), np.random.default_rng([asked.seed, number])
        for _ in range(asked.campaigns):
            campaign(row.setting, random, figures)
        rows.append(_shown(row, figures))
    least = minimum_detectable_effect(NoiseFloor(0.03, 5), 8, ALPHA / 20)
    return {
        "table": rows,
        "CV 3 %, real +5 %, 16 runs affordable, alpha .05/20": f"{'untestable before the first run' if least > 0.05 else 'MISSED'}: 8 pairs detect {least:.1%}",
        "campaigns a setting": asked.campaigns,
        "how to read it": "runs: floor, screens, confirmation; phantom: mean over campaigns of effects reported for nulls; shipped: what the final stack still claims of it; "
        "pairs at most 8 at CV 1 %, 12 else; minimum effect 5, 10 and 25 % at CV 1, 3 and 7 %; shams and leave-one-out are not in it",
        "all hold": all(row["holds"] for row in rows) and least > 0.05,
    }


def _shown(row: Row, figures: Figures) -> dict[str, Any]:
    setting, n = row.setting, figures.campaigns
    return {
        "world": setting.world,
        "CV %": round(100 * setting.cv),
        "real": " ".join(f"+{effect:.0%}" for effect in setting.real) or "none",
        "false keeps": round(figures.false_share, 4),
        "phantom %": round(100 * figures.phantom / n, 3),
        "shipped %": round(100 * figures.shipped / n, 3),
        "power": round(figures.power, 3) if figures.wanted else None,
        "runs": round(figures.mean_runs, 1),
        "stack runs": round(figures.stack_runs / n, 1),
        "confirmed": round(figures.confirmed / n, 1),
        "untestable": round(figures.untestable / n, 1),
        "must": row.must,
        "holds": row.holds(figures),
    }
