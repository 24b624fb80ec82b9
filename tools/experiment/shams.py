"""Shams: candidates that can't be better than the baseline, planted to see how often a campaign is fooled."""

from __future__ import annotations

import os
from pathlib import Path

from ..contract.base import Scalar
from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint
from ..contract.hypothesis import Check, Hypothesis, Intervention, Prediction
from ..knobs.catalogue import Catalogue
from ..ledger.seals import SealBook

INERT: tuple[tuple[str, Scalar, str], ...] = (
    ("disable_cascade_attn", False, "Cascade attention shares the attention over a common prefix between the requests of a batch; many prompts of this workload begin alike."),
    ("disable_cascade_attn", True, "Choosing the cascade kernel costs host time in every step, and pays only for batches that share a very long prefix."),
    ("seed", 1, "Sampling state is set up from the seed; another seed changes the order in which random numbers are drawn, and with it the host's work a step."),
)
"""Settings that the engines accept and that change nothing that is measured, with a plausible story: the reader of the record must not tell it at a glance.
Cascade attention was removed from vLLM in 0.32, the flag has no effect; answers of a fixed length at temperature 0 don't draw from the seed."""


def seal_book(campaign: str, project: Path) -> SealBook:
    """Natures and salts lie in the user's state folder: outside the project, where no tool of the crew reads."""
    from ..contract.base import digest

    home = Path(os.environ.get("SERVEWRIGHT_STATE") or Path.home() / ".local" / "state" / "servewright")
    return SealBook(home / "seals" / f"{campaign}-{digest(str(project))[:12]}.json")


def plant(endpoint: Endpoint, baseline: Configuration, catalogue: Catalogue, minimum_effect: float, count: int) -> list[Hypothesis]:
    """Up to `count` shams that look like what an optimiser over the knobs would suggest."""
    found: list[Hypothesis] = []
    for name, value, story in INERT:
        if len(found) == count:
            break
        if name not in catalogue.knobs or catalogue.knobs[name].access != "tunable" or baseline.args.get(name, catalogue.knobs[name].default) == value:
            continue
        change = Intervention(set={name: value})
        found.append(
            Hypothesis(
                family=catalogue.knobs[name].family,
                title=f"Set {name} to {value}",
                explanation=f"{story} The optimiser's model of the knobs puts this setting ahead of the present one.",
                intervention=change,
                prediction=Prediction(low=minimum_effect, high=max(0.2, 2 * minimum_effect)),
                falsifiers=(
                    Check(observable="capacity_rps_per_gpu", arm="ratio", op="<", value=1.0),
                    Check(observable="ttft_p99_s@0.8", arm="ratio", op=">", value=1.15),
                ),
                activation=catalogue.activation(change),
                proposer="search",
            )
        )
    return found
