"""Prefix caching: prompts that begin alike need their beginning computed once.

Source: vLLM's automatic prefix caching: full blocks are hashed in a chain, so only whole shared prefixes hit, from the first token on.
"""

from __future__ import annotations

from ...tools.contract.hypothesis import Check
from .draft import Answer, choose, draft, interval, settled, too_small
from .facts import Change, Facts

IDEAL = "prefix_hit_tokens_infinite_cache"
"""Share of prompt tokens that a cache which never forgets would hit, in the workload's figures."""
LITTLE = 0.03
"""Ideal share below which sharing can't matter."""
GOOD = 0.7
"""Share of the ideal that a cache under eviction is content with."""


def prefix_caching(facts: Facts) -> list[Answer]:
    ideal = facts.workload(IDEAL)
    on = facts.arg("enable_prefix_caching")
    hits = facts.seen("prefix_hit_share")
    hits = hits if hits is not None else facts.seen("cached_token_share")
    if ideal is None:
        return [settled("prefix_caching", "put_off", "the trace carries no prompt blocks or texts, so how much prefixes share isn't known.")]
    if ideal < LITTLE:
        return [
            settled("prefix_caching", "ruled_out", f"a cache that never forgets would hit {ideal:.1%} of the prompt tokens: prompts hardly share a beginning.")
        ]
    if on:
        return [_already_on(facts, ideal, hits)]
    change: Change = {"enable_prefix_caching": True}
    _, effect, said = choose(facts, [change])
    found = f"Prefix caching is off, and {ideal:.0%} of the prompt tokens repeat an earlier prefix (trace, cache that never forgets)."
    if (small := too_small("prefix_caching", facts, effect, found)) is not None:
        return [small]
    why = f"{found} Each of them is prefilled again: that work delays first tokens and every decode that shares a step with it. Cached blocks skip it. {said}"
    falsifiers = [
        Check(observable="prefix_hit_share", op="<", value=round(0.3 * ideal, 4)),
        Check(observable="ttft_p50_s@1.0", arm="ratio", op=">", value=1.0),
    ]
    proof = [Check(observable="prefix_hit_share", op=">", value=0.005)]
    title = f"Share prefixes: {ideal:.0%} of the prompt tokens repeat"
    return [
        draft("prefix_caching", "share_prefixes", change, title=title, why=why, prediction=interval(effect, (0.05, 1.0)), falsifiers=falsifiers, proof=proof)
    ]


def _already_on(facts: Facts, ideal: float, hits: float | None) -> Answer:
    if hits is None:
        return settled("prefix_caching", "put_off", "prefix caching is on, but the server does not report its hits.")
    if hits >= GOOD * ideal:
        return settled(
            "prefix_caching", "ruled_out", f"prefix caching is on and hits {hits:.0%} of the prompt tokens, of {ideal:.0%} possible ({facts.source})."
        )
    return settled(
        "prefix_caching",
        "ruled_out",
        f"prefix caching is on and hits {hits:.0%} of {ideal:.0%} possible ({facts.source}): what is missing was evicted or comes from the replay's window; room for blocks is the memory family's question.",
    )
