"""Which runs are fit to judge by, and whose fault a failure is."""

from __future__ import annotations

from ..contract.errors import FailureKind
from ..contract.run import RunRecord

NOT_THE_CANDIDATES: frozenset[FailureKind] = frozenset({"port_taken", "driver_missing", "not_installed"})
"""Failures that say something of the machine, not of the configuration: the run is unfit, the candidate isn't infeasible."""


def unfit(run: RunRecord) -> str:
    """Why this run can't be judged by; empty when it can."""
    if run.failure is not None:
        return f"{run.failure.kind} at {run.failure.stage}: {run.failure.line}"
    if run.measurement is None:
        return "nothing was measured"
    return "; ".join(run.measurement.invalid)


def killed_by_itself(run: RunRecord) -> bool:
    """The arm did not start, or died, by its own configuration."""
    return run.failure is not None and run.failure.kind not in NOT_THE_CANDIDATES


def too_many_unfit(unfit_pairs: int, max_pairs: int) -> bool:
    """A third of the planned pairs may be set aside (one always may); beyond that the measurement isn't fit to judge by."""
    return unfit_pairs > max(1, max_pairs // 3)
