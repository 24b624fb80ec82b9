"""What may not get worse, whatever a hypothesis says: no model can leave these out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ..contract.hypothesis import Arm, Check, Op
from ..contract.run import RunMeasurement
from ..contract.sla import SLA
from ..contract.verdict import CheckResult
from .checks import evaluate

_Bounded = Literal["ttft_s", "tpot_s", "e2e_s"]


@dataclass(frozen=True)
class Guardrail:
    """`statement` must hold of candidate against baseline; it breaks when its whole interval says that it doesn't, and `unless` is not true."""

    observable: str
    arm: Arm
    op: Op
    bound: float
    why: str
    sla: _Bounded | None = None
    """SLA bound that this figure answers to: no break while the candidate is inside it; `unbounded` replaces `bound` where the SLA has none."""
    unbounded: float | None = None
    only_where_baseline_keeps_sla: str = ""
    """Load at which the baseline's attainment must not be below the SLA's, or there is nothing to guard."""
    also: tuple[Arm, Op, float] | None = None
    """A second statement on the same figure; the guardrail breaks only when both are false."""
    lossless_only: bool = False


def _p99(name: str, bound: _Bounded, load: str) -> Guardrail:
    return Guardrail(f"{name}_p99_s@{load}", "ratio", "<=", 1.10, "tail latency", sla=bound, unbounded=2.0, only_where_baseline_keeps_sla=load)


_LATENCIES: tuple[tuple[str, _Bounded], ...] = (("ttft", "ttft_s"), ("tpot", "tpot_s"), ("e2e", "e2e_s"))
GUARDRAILS: tuple[Guardrail, ...] = (
    *(_p99(name, bound, load) for load in ("0.8", "1.0") for name, bound in _LATENCIES),
    Guardrail("error_share@0.8", "difference", "<=", 0.01, "errors below the baseline's capacity"),
    Guardrail("error_share@1.0", "difference", "<=", 0.01, "errors at the baseline's capacity", only_where_baseline_keeps_sla="1.0"),
    Guardrail("error_share@1.5", "difference", "<=", 0.05, "errors in a burst of 1.5 times the baseline's capacity"),
    Guardrail("output_tokens_per_s@1.5", "ratio", ">=", 0.90, "throughput in a burst"),
    Guardrail("preemptions", "ratio", "<=", 2.0, "preemptions", also=("difference", "<=", 50)),
    Guardrail("memory_headroom_share", "candidate", ">=", 0.02, "free memory at the peak", also=("difference", ">=", 0.0)),
    Guardrail("launch_s", "ratio", "<=", 3.0, "time to start", also=("difference", "<=", 60)),
    Guardrail("output_tokens_mean@0.8", "ratio", "<=", 1.10, "answer length", lossless_only=True),
    Guardrail("output_tokens_mean@0.8", "ratio", ">=", 0.90, "answer length", lossless_only=True),
)
"""A p99 beyond its SLA bound may not grow by a tenth; where the SLA has no bound for it, it may not double (a gain in capacity is often paid for with a
latency that the user did not bound). Loads are multiples of the baseline's capacity: at 1.0 it stands at its cliff, so a candidate that is
no worse has no longer tails there, and intervals are wide."""


def guard(pairs: Sequence[tuple[RunMeasurement, RunMeasurement]], floor: Sequence[RunMeasurement], sla: SLA, lossless: bool) -> tuple[CheckResult, ...]:
    """Every guardrail that applies, with `holds` False for those that broke and None for what can't be told."""
    return tuple(_judge(g, pairs, floor, sla) for g in GUARDRAILS if (lossless or not g.lossless_only) and _applies(g, pairs, floor, sla))


def _applies(guardrail: Guardrail, pairs: Sequence[tuple[RunMeasurement, RunMeasurement]], floor: Sequence[RunMeasurement], sla: SLA) -> bool:
    if guardrail.sla == "e2e_s" and sla.e2e_s is None and sla.ttft_s is not None and sla.tpot_s is not None:
        return False  # bounded through the other two
    if not guardrail.only_where_baseline_keeps_sla:
        return True
    kept = evaluate(Check(observable=f"attainment@{guardrail.only_where_baseline_keeps_sla}", arm="baseline", op=">=", value=sla.attainment), pairs, floor)
    return isinstance(kept.value, float) and kept.value >= sla.attainment


def _judge(guardrail: Guardrail, pairs: Sequence[tuple[RunMeasurement, RunMeasurement]], floor: Sequence[RunMeasurement], sla: SLA) -> CheckResult:
    inside = getattr(sla, guardrail.sla) if guardrail.sla else None
    bound = guardrail.unbounded if guardrail.sla and inside is None and guardrail.unbounded else guardrail.bound
    result = evaluate(Check(observable=guardrail.observable, arm=guardrail.arm, op=guardrail.op, value=bound), pairs, floor)
    second: tuple[Arm, Op, float] | None = ("candidate", "<=", inside) if inside is not None else guardrail.also
    if second is not None and result.holds is not True:
        arm, op, value = second
        other = evaluate(Check(observable=guardrail.observable, arm=arm, op=op, value=value), pairs, floor)
        no_ratio = result.value is None and other.value is not None
        if other.holds is not False or not (result.holds is False or no_ratio):
            return result.model_copy(update={"holds": True if other.holds else None, "reason": f"{guardrail.why}: {result.reason}; {other.check}: {other.reason}"})
        result = (other if no_ratio else result).model_copy(update={"holds": False})
    return result.model_copy(update={"reason": f"{guardrail.why}: {result.reason}"})
