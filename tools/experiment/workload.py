"""The frozen workload of a campaign, and its figures."""

from __future__ import annotations

from pathlib import Path

from ..contract.base import Scalar
from ..contract.endpoint import Endpoint
from ..ledger.project import Project
from ..traffic.frozen import freeze, open_frozen
from ..traffic.workload import Workload, load_workload


def frozen_workload(endpoint: Endpoint, project: Project, thread: str) -> tuple[Path, Workload]:
    """Freeze it into the campaign's folder, or open what was frozen there before (a resumed campaign replays the same bytes).

    Raises `BadInput` for a trace that can't be read, before anything is made.
    """
    known = sorted((project.campaign_path(thread) / "workload").glob("*.workload"))
    if known:
        return known[0], open_frozen(known[0])
    loaded = load_workload(endpoint.workload)
    path = freeze(loaded, project.campaign_folder(thread) / "workload")
    return path, open_frozen(path)


def natural_rate(workload: Workload) -> float:
    """The trace's own mean rate, requests/s."""
    span = float(workload.at_s[-1] - workload.at_s[0])
    return (workload.requests - 1) / span if span > 0 else 1.0


def figures(workload: Workload) -> dict[str, Scalar]:
    """Numbers and short texts about the workload, flat; never its text."""
    flat: dict[str, Scalar] = {}
    for name, value in workload.describe().items():
        if isinstance(value, dict):
            flat |= {f"{name}.{inner}": v for inner, v in value.items() if isinstance(v, (bool, int, float, str))}
        elif isinstance(value, (bool, int, float, str)):
            flat[name] = value
    return flat
