"""Are the outputs of a lossless change the baseline's, within what two baselines differ by?"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ..contract.run import Probe, RunRecord
from ..contract.verdict import ParityResult

LEAST_TOLERANCE = 0.01
"""Nats a token. What rounding to bf16 in another batch shape moves without the model's being another; a baseline that repeats
itself exactly would otherwise make any other kernel shape a break."""
ALLOWANCE = 3.0
"""Times the largest distance between two runs of one configuration."""


def distance(a: Probe, b: Probe) -> float | None:
    """Mean absolute difference of log-probability per token, nats; None when the two did not score the same tokens."""
    if not a.logprobs or [len(p) for p in a.logprobs] != [len(p) for p in b.logprobs]:
        return None
    gaps = [abs(x - y) for mine, yours in zip(a.logprobs, b.logprobs, strict=True) for x, y in zip(mine, yours, strict=True)]
    return statistics.fmean(gaps) if gaps else None


def parity(baseline: Sequence[RunRecord], candidate: Sequence[RunRecord], floor: Sequence[RunRecord] = ()) -> ParityResult:
    """Candidate probes against the baseline probes of the same experiment.

    `floor`: further baseline runs, for the tolerance only; of one configuration among themselves, which
    may be another than this experiment's baseline (the stack so far). The distance that decides is the smallest over the baseline runs, averaged over
    the candidate's: one odd baseline run must not break parity, one odd candidate run must show.
    """
    there, here = [r.probe for r in baseline if r.probe.logprobs], [r.probe for r in candidate if r.probe.logprobs]
    if not here or not there:
        silent = baseline if here else candidate
        why = next((r.probe.why_missing for r in silent if r.probe.why_missing), "no probe came back")
        whose = "either arm" if not here and not there else "the candidate" if not here else "the baseline"
        return ParityResult(kept=None, distance=None, tolerance=None, reason=f"no log-probabilities from {whose}: {why}")
    configurations = {r.configuration for r in floor}
    alike = [there, *([r.probe for r in floor if r.configuration == one] for one in sorted(configurations))]
    tolerance = max(LEAST_TOLERANCE, ALLOWANCE * max((d for group in alike for d in _among(group)), default=0.0))
    gaps = []
    for probe in here:
        near = [d for other in there if (d := distance(probe, other)) is not None]
        if not near:
            return ParityResult(kept=False, distance=None, tolerance=tolerance, reason="the candidate scored another number of tokens than the baseline")
        gaps.append(min(near))
    gap = max(gaps)
    kept = gap <= tolerance
    return ParityResult(
        kept=kept, distance=gap, tolerance=tolerance, reason=f"log-probabilities differ by {gap:.4f} nats a token, {'within' if kept else 'beyond'} the {tolerance:.4f} allowed"
    )


def _among(probes: Sequence[Probe]) -> list[float]:
    return [d for i, a in enumerate(probes) for b in probes[i + 1 :] if (d := distance(a, b)) is not None]
