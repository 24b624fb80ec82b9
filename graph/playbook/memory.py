"""Memory: room for KV blocks.

Sources: vLLM's optimisation guide on preemption (more KV space by gpu_memory_utilization); the scheduler's rule that an allocation that fails preempts the
youngest running request, whose work is then done again.
"""

from __future__ import annotations

from ...tools.contract.hypothesis import Check
from .draft import Answer, choose, draft, figure, interval, settled, too_small, words
from .facts import Change, Facts

FULL = 0.95
"""KV usage at which admission waits for blocks."""
MOST_UTILISATION = 0.95
"""Beyond it, fragmentation and other users of the device run it out of memory."""


def memory(facts: Facts) -> list[Answer]:
    kv, preemptions = facts.seen("kv_usage_max"), facts.seen("preemptions")
    if kv is None and preemptions is None:
        return [settled("memory", "put_off", "the server reports neither its KV usage nor its preemptions.")]
    if (kv or 0) < FULL and not preemptions:
        return [
            settled(
                "memory",
                "ruled_out",
                f"KV usage peaked at {figure(kv, '%', 100)} and {figure(preemptions)} requests were preempted ({facts.source}): memory was never short.",
            )
        ]
    found = f"KV usage peaks at {figure(kv, '%', 100)} with {figure(preemptions)} preemptions while {figure(facts.seen('waiting_mean'))} requests wait on average ({facts.source})."
    changes = _more_blocks(facts)
    if not changes:
        return [
            settled(
                "memory",
                "ruled_out",
                f"{found} The engine already takes {figure(facts.number('gpu_memory_utilization'), '%', 100)} of the device's memory: there is no more to give.",
            )
        ]
    change, effect, said = choose(facts, changes)
    if (small := too_small("memory", facts, effect, found)) is not None:
        return [small]
    why = f"{found} A preempted request is computed again from its first token, and those that wait for blocks hold up all behind them. More blocks hold more requests at once. {said}"
    falsifiers = [
        Check(observable="preemptions", arm="difference", op=">", value=max(10.0, 0.5 * (preemptions or 0))),
        Check(observable="ttft_p99_s@1.0", arm="ratio", op=">", value=1.1),
    ]
    blocks = facts.seen("kv_blocks") or facts.number("num_gpu_blocks")
    proof = [Check(observable="kv_blocks", op=">", value=blocks)] if blocks else []
    title = f"More KV blocks: {words(change)}"
    return [draft("memory", "more_blocks", change, title=title, why=why, prediction=interval(effect, (0.03, 0.6)), falsifiers=falsifiers, proof=proof)]


def _more_blocks(facts: Facts) -> list[Change]:
    """A cap on the blocks goes first; then a larger share of the device."""
    capped, share = facts.number("num_gpu_blocks_override"), facts.number("gpu_memory_utilization")
    if capped:
        return [{"num_gpu_blocks_override": int(capped * factor)} for factor in (2, 4, 8)]
    if share is None or share >= MOST_UTILISATION - 0.01:
        return []
    return [{"gpu_memory_utilization": value} for value in (0.9, 0.92, MOST_UTILISATION) if value > share + 0.01]
