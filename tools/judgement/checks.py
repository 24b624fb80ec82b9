"""Checks evaluated over the confirmation runs of an experiment."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import TypeGuard

from ..contract.base import Scalar
from ..contract.hypothesis import Check
from ..contract.observables import resolve
from ..contract.run import RunMeasurement
from ..contract.verdict import CheckResult
from .scale import variance
from .tails import t_upper

CHECK_LEVEL = 0.01
"""One-sided: the chance that noise alone carries a figure across the bound it lies on."""
_STATISTIC: dict[str, Callable[[Sequence[float]], float]] = {"median": statistics.median, "mean": statistics.fmean, "min": min, "max": max}
_MEDIAN_COST = math.sqrt(math.pi / 2)
"""Standard error of a median over a mean's, normal values."""


def observed(run: RunMeasurement, name: str) -> Scalar | None:
    if name == "capacity_rps_per_gpu":
        return run.capacity.rps_per_gpu
    return run.observables.get(name)


def evaluate(check: Check, pairs: Sequence[tuple[RunMeasurement, RunMeasurement]], floor: Sequence[RunMeasurement] = ()) -> CheckResult:
    """Is the check's statement true of these (baseline, candidate) pairs?

    A noisy figure is judged by its interval: true or false only when the whole interval lies on one side, None otherwise. The interval is a t
    interval on the log scale (linear where a figure is not positive) with the spread of the runs looked at pooled with that of the
    baseline runs and `floor` (further identical baseline runs). Configuration and block counts are exact.
    """
    baseline, candidate = ([observed(pair[arm], check.observable) for pair in pairs] for arm in (0, 1))
    needed = {"baseline": baseline, "candidate": candidate}.get(check.arm, [*baseline, *candidate])
    missing = sum(value is None for value in needed)
    if not needed or missing:
        return CheckResult(check=check, value=None, holds=None, reason=f"{check.observable} was not measured in {missing} of {len(needed)} runs" if needed else "no pair was measured")
    if not all(_is_number(value) for value in [*needed, check.value]):
        return _exact(check, [value for value in needed if value is not None])
    before = [float(v) for v in baseline if _is_number(v)]
    after = [float(v) for v in candidate if _is_number(v)]
    spare = [float(v) for run in floor if _is_number(v := observed(run, check.observable))]
    if check.arm == "ratio" and any(value == 0 for value in before):
        return CheckResult(check=check, value=None, holds=None, reason=f"{check.observable} of the baseline is 0: there is no ratio")
    return _numeric(check, before, after, spare)


def _is_number(value: Scalar | None) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _exact(check: Check, values: Sequence[Scalar]) -> CheckResult:
    """Equality with words and switches: every run must agree."""
    odd = [value for value in values if not _same(value, check.value)]
    equal = not odd
    shown = odd[0] if odd else values[0]
    return CheckResult(check=check, value=shown, holds=equal if check.op == "==" else len(odd) == len(values), reason=f"{check.observable} is {shown!r}")


def _same(a: Scalar, b: Scalar) -> bool:
    if _is_number(a) and _is_number(b):
        return a == b
    return str(a).strip().lower() == str(b).strip().lower()


def _numeric(check: Check, before: list[float], after: list[float], spare: list[float]) -> CheckResult:
    values = {
        "baseline": before,
        "candidate": after,
        "ratio": [a / b for a, b in zip(after, before, strict=False)] if check.arm == "ratio" else [],
        "difference": [a - b for a, b in zip(after, before, strict=False)],
    }[check.arm]
    value = _STATISTIC[check.statistic](values)
    if not resolve(check.observable).noisy:
        return CheckResult(check=check, value=value, holds=_holds(check, value, value), reason=f"{check.statistic} {value:g}")
    ends = _interval(check, value, values, before, spare)
    if ends is None:
        return CheckResult(check=check, value=value, holds=None, reason=f"{check.statistic} {value:.4g}; one run says nothing of its own noise")
    low, high = ends
    holds = _holds(check, low, high)
    untold = " and can't be told from the bound" if holds is None else ""
    return CheckResult(check=check, value=value, interval=(low, high), holds=holds, reason=f"{check.statistic} {value:.4g}, interval {low:.4g} to {high:.4g}{untold}")


def _interval(check: Check, value: float, values: list[float], before: list[float], spare: list[float]) -> tuple[float, float] | None:
    known = [group for group in (before if check.arm != "baseline" else [], spare) if len(group) > 1]
    logs = check.arm != "difference" and value > 0 and all(v > 0 for v in [*values, *before, *spare])
    own, own_df = _spread([values], logs)
    prior, prior_df = _spread(known, logs)
    runs_a_value = 2 if check.arm in ("ratio", "difference") else 1
    spread, df = variance(own, own_df, runs_a_value * prior, prior_df)
    if df == 0:
        return None
    cost = {"mean": 1 / math.sqrt(len(values)), "median": (_MEDIAN_COST if len(values) > 2 else 1) / math.sqrt(len(values))}.get(check.statistic, 1.0)
    reach = t_upper(CHECK_LEVEL, df) * math.sqrt(spread) * cost
    return (value * math.exp(-reach), value * math.exp(min(reach, 50.0))) if logs else (value - reach, value + reach)


def _spread(groups: Sequence[Sequence[float]], logs: bool) -> tuple[float, int]:
    """Variance within groups, and its degrees of freedom."""
    df = sum(len(group) - 1 for group in groups)
    if df <= 0:
        return 0.0, 0
    return sum(statistics.variance([math.log(v) for v in group] if logs else group) * (len(group) - 1) for group in groups if len(group) > 1) / df, df


def points_to(result: CheckResult) -> bool | None:
    """What the bare figure says of the check, where its interval can't tell; None when there is no figure."""
    value = result.value
    return _holds(result.check, float(value), float(value)) if _is_number(value) else None


def _holds(check: Check, low: float, high: float) -> bool | None:
    """True or false when it is so of every value from `low` to `high`; the tolerance makes it easier to hold (harder for !=)."""
    bound, slack = float(check.value), check.tolerance
    match check.op:
        case "<":
            ends = (high < bound + slack, low >= bound + slack)
        case "<=":
            ends = (high <= bound + slack, low > bound + slack)
        case ">":
            ends = (low > bound - slack, high <= bound - slack)
        case ">=":
            ends = (low >= bound - slack, high < bound - slack)
        case "==" | "!=":
            inside, outside = bound - slack <= low and high <= bound + slack, high < bound - slack or low > bound + slack
            ends = (inside, outside) if check.op == "==" else (outside, inside)
    return True if ends[0] else False if ends[1] else None
