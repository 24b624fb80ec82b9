"""What a trace is like, in figures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .trace import Trace


def describe(trace: Trace) -> dict[str, Any]:
    """Figures of a trace: counts, span, lengths in tokens and, where blocks are known, what a cache that never forgets would hit.

    Percentiles are nearest-rank: a length that occurs. A block is hit when it and all before it have been seen in an earlier request.
    """
    span = float(trace.at_s[-1] - trace.at_s[0])
    gaps = np.diff(trace.at_s)
    figures: dict[str, Any] = {
        "format": trace.format,
        "requests": trace.requests,
        "span_ms": round(span * 1e3),
        "rate_per_s": round(trace.requests / span, 4) if span else None,
        "interarrival_cv": round(float(gaps.std() / gaps.mean()), 3) if span else None,
        "distinct_timestamps": len(np.unique(trace.at_s)),
        **_lengths("input", trace.prompt_tokens),
        **_lengths("output", trace.output_tokens),
        "sessions": len({s for s in trace.sessions if s is not None}),
    }
    if trace.blocks is not None and trace.block_tokens is not None:
        figures |= _sharing(trace.blocks, trace.prompt_tokens, trace.block_tokens)
    return figures


def _lengths(name: str, tokens: NDArray[np.int32]) -> dict[str, Any]:
    known = tokens[tokens >= 0]
    if not len(known):
        return {f"{name}_mean": None, f"{name}_p50": None, f"{name}_p99": None, f"{name}_max": None}
    p50, p99 = (int(np.percentile(known, q, method="inverted_cdf")) for q in (50, 99))
    return {f"{name}_mean": round(float(known.mean()), 2), f"{name}_p50": p50, f"{name}_p99": p99, f"{name}_max": int(known.max())}


def _sharing(blocks: list[NDArray[np.int64]], prompt: NDArray[np.int32], block_tokens: int) -> dict[str, Any]:
    seen: set[int] = set()
    hit_blocks = hit_tokens = all_blocks = 0
    for row, tokens in zip(blocks, prompt.tolist(), strict=True):
        ids = row.tolist()
        hits = next((k for k, block in enumerate(ids) if block not in seen), len(ids))
        seen.update(ids)
        hit_blocks += hits
        hit_tokens += min(hits * block_tokens, tokens)
        all_blocks += len(ids)
    return {
        "block_tokens": block_tokens,
        "distinct_blocks": len(seen),
        "prefix_hit_blocks_infinite_cache": round(hit_blocks / all_blocks, 4),
        "prefix_hit_tokens_infinite_cache": round(hit_tokens / int(prompt.sum()), 4),
    }
