"""Scheduling: who runs in a step, and how many tokens a step takes.

Sources: vLLM's optimisation guide (max_num_seqs, max_num_batched_tokens and their effect on TTFT and inter-token latency); Agrawal et al., Sarathi-Serve
(OSDI 2024), on prefills that stall decodes; the scheduler's own order (running requests first, then waiting ones while budget and slots last).
"""

from __future__ import annotations

from ...tools.contract.hypothesis import Check
from .draft import WORSE, Answer, choose, draft, figure, interval, settled, too_small, words
from .facts import Change, Facts

PINNED = 0.98
"""Share of max_num_seqs that the most running requests reach when slots, not demand, were the limit."""
KV_FREE = 0.90
"""KV usage below which memory did not stop admission."""
NEAR = 0.70
"""Share of an SLA bound at which it counts as the binding one."""
STALLED = 1.4
"""p99 over p50 of the time per output token from which on decodes are taken to wait for prefills."""
MOST_SEQS, MOST_TOKENS, FEWEST_TOKENS = 1024, 16384, 256


def scheduling(facts: Facts) -> list[Answer]:
    """At most one hypothesis on the slots and two on the budget; with reasons where there is none."""
    return [more_sequences(facts), *batch_budget(facts)]


def more_sequences(facts: Facts) -> Answer:
    slots, running, waiting, kv = facts.number("max_num_seqs"), facts.seen("running_max"), facts.seen("waiting_mean"), facts.seen("kv_usage_max")
    if slots is None or running is None or waiting is None:
        return settled(
            "scheduling", "put_off", "the server reports neither its slots nor how many requests run and wait: queueing can't be told apart from work."
        )
    if running < PINNED * slots:
        return settled("scheduling", "ruled_out", f"running requests peaked at {running:g} of {slots:g} slots ({facts.source}): requests never waited for one.")
    if kv is not None and kv >= KV_FREE:
        return settled(
            "scheduling", "ruled_out", f"all {slots:g} slots are taken, but KV usage peaked at {kv:.0%} ({facts.source}): more requests would not find memory."
        )
    fits = slots * 0.95 / max(kv or 0.05, 0.01)
    """Requests of the present kind that the KV cache could hold."""
    changes: list[Change] = [{"max_num_seqs": n} for n in dict.fromkeys(_room(int(slots), int(fits), facts))]
    if not changes:
        return settled(
            "scheduling", "ruled_out", f"the KV cache holds about {fits:.0f} requests like these, no more than the {slots:g} slots there are ({facts.source})."
        )
    change, effect, said = choose(facts, changes)
    found = f"Running requests are pinned at max_num_seqs={slots:g} (peak {running:g}) while {waiting:.1f} wait on average, and KV usage peaks at {figure(kv, '%', 100)} ({facts.source})."
    if (small := too_small("scheduling", facts, effect, found)) is not None:
        return small
    ttft, tpot = facts.seen("ttft_p99_s@1.0"), facts.seen("tpot_p50_s@1.0")
    why = (
        f"Requests queue for a slot, not for memory. {found} TTFT p99 at the baseline's capacity is {figure(ttft, ' s')} (bound {figure(facts.sla('ttft_s'), ' s')}), "
        f"a token takes {figure(tpot, ' ms', 1e3)}. A decode step reads the weights once for all its requests, so more of them cost little until attention or compute is the limit. {said}"
    )
    falsifiers = [
        Check(observable="ttft_mean_s@1.2", arm="ratio", op=">", value=0.95),
        Check(observable="e2e_p50_s@1.0", arm="ratio", op=">", value=1.5),
    ]
    proof = [Check(observable="running_max", op=">", value=slots)]
    title = f"More sequences: {words(change)} (now {slots:g})"
    return draft("scheduling", "more_sequences", change, title=title, why=why, prediction=interval(effect, (0.1, 2.0)), falsifiers=falsifiers, proof=proof)


def _room(slots: int, fits: int, facts: Facts) -> list[int]:
    """Two, four and eight times the slots, and what fits, as far as memory and the step's token budget go."""
    budget = facts.number("max_num_batched_tokens") or MOST_TOKENS
    most = int(min(MOST_SEQS, budget, 2 ** max(fits, 1).bit_length()))
    return sorted({min(slots * factor, most) for factor in (2, 4, 8, 16) if min(slots * factor, most) > slots})


def batch_budget(facts: Facts) -> list[Answer]:
    """Smaller when prefills stall decodes and time per token binds, larger when prompts queue and time to first token binds.

    Both are asked for when both bind, and when the stack's capacity has moved away from the loads at which figures are known.
    """
    tokens = facts.number("max_num_batched_tokens")
    if tokens is None:
        return [settled("scheduling", "put_off", "the server does not report max_num_batched_tokens.")]
    p50, p99, ttft = facts.seen("tpot_p50_s@1.0"), facts.seen("tpot_p99_s@1.0"), facts.seen("ttft_p99_s@1.0")
    stalled = p50 is not None and p99 is not None and p99 > STALLED * p50
    answers: list[Answer] = []
    if (stalled and _near(p99, facts.sla("tpot_s"))) or facts.moved:
        answers.append(_smaller(facts, tokens, p50, p99))
    if _near(ttft, facts.sla("ttft_s")) or facts.moved:
        answers.append(_larger(facts, tokens, ttft))
    if not answers:
        latencies = f"p99 of the time per token is {figure(p99, ' ms', 1e3)} at a median of {figure(p50, ' ms', 1e3)}, p99 of TTFT {figure(ttft, ' s')} ({facts.source})"
        answers.append(settled("scheduling", "ruled_out", f"{latencies}: neither is near its bound for want of budget."))
    return answers


def _smaller(facts: Facts, tokens: float, p50: float | None, p99: float | None) -> Answer:
    floor = max(FEWEST_TOKENS, facts.number("max_num_seqs") or 0)
    changes: list[Change] = [{"max_num_batched_tokens": int(tokens // factor)} for factor in (2, 4, 8, 16) if tokens // factor >= floor]
    found = f"A decode step that shares its batch with a prefill takes longer: p99 of the time per token is {figure(p99, ' ms', 1e3)}, its median {figure(p50, ' ms', 1e3)}, the bound {figure(facts.sla('tpot_s'), ' ms', 1e3)} ({facts.source}), at a budget of {tokens:g} tokens a step."
    if not changes:
        return settled("scheduling", "ruled_out", f"{found} The budget can't go lower: every running request needs a token of it.")
    change, effect, said = choose(facts, changes)
    if (small := too_small("scheduling", facts, effect, found)) is not None:
        return small
    why = (
        f"{found} Prompts average {figure(facts.workload('input_mean'))} tokens. A smaller budget cuts prefills into chunks that decodes hardly notice. {said}"
    )
    falsifiers = [
        Check(observable="tpot_p99_s@1.0", arm="ratio", op=">", value=1.0),
        Check(observable="ttft_p50_s@0.8", arm="ratio", op=">", value=2.0),
    ]
    title = f"Smaller batch budget: {words(change)} (now {tokens:g})"
    return draft("scheduling", "smaller_batches", change, title=title, why=why, prediction=interval(effect, (0.05, 0.5)), falsifiers=falsifiers)


def _larger(facts: Facts, tokens: float, ttft: float | None) -> Answer:
    changes: list[Change] = [{"max_num_batched_tokens": int(tokens * factor)} for factor in (2, 4, 8) if tokens * factor <= MOST_TOKENS]
    found = f"Prompts queue for prefill: TTFT p99 is {figure(ttft, ' s')} against a bound of {figure(facts.sla('ttft_s'), ' s')} ({facts.source}), at a budget of {tokens:g} tokens a step."
    if not changes:
        return settled("scheduling", "ruled_out", f"{found} The budget of {tokens:g} is already past what a step can use; prefill is limited by compute.")
    change, effect, said = choose(facts, changes)
    if (small := too_small("scheduling", facts, effect, found)) is not None:
        return small
    why = f"{found} Prompts average {figure(facts.workload('input_mean'))} tokens (p99 {figure(facts.workload('input_p99'))}). A larger budget finishes a prompt in fewer steps. {said}"
    falsifiers = [
        Check(observable="ttft_p99_s@1.0", arm="ratio", op=">", value=WORSE),
        Check(observable="ttft_p50_s@1.2", arm="ratio", op=">", value=1.0),
    ]
    title = f"Larger batch budget: {words(change)} (now {tokens:g})"
    return draft("scheduling", "larger_batches", change, title=title, why=why, prediction=interval(effect, (0.05, 0.5)), falsifiers=falsifiers)


def _near(value: float | None, bound: float | None) -> bool:
    return value is not None and bound is not None and value >= NEAR * bound
