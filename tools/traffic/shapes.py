"""Workloads without a trace: ready-made shapes, seeded."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import orjson

from .workload import Workload

WORDS = ["the", "a", "fox", "dog", "river", "stone", "light", "hand", "house", "tree", "cloud", "road", "time", "word", "long", "small", "quick", "old", "over", "under", "runs", "sees", "makes", "holds", "and", "or", "not", "with", "from", "into"]
PROMPT_CHARACTERS = 200


class ShortChats(Sequence[bytes]):
    """Chat bodies with a user message of 200 characters each, made when asked for."""

    def __init__(self, count: int, tokens: int, seed: int) -> None:
        self._count, self._tokens, self._seed = count, tokens, seed

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> bytes:  # pyright: ignore[reportIncompatibleMethodOverride]
        rng = random.Random(f"{self._seed}/{index}")
        text = " ".join(rng.choices(WORDS, k=PROMPT_CHARACTERS // 2))[:PROMPT_CHARACTERS]
        body = {
            "messages": [{"role": "user", "content": text}],
            "max_tokens": self._tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return orjson.dumps(body)[1:]


def short_chats(count: int, *, tokens: int = 16, poisson: bool = False, seed: int = 0) -> Workload:
    """`count` short chats with answers of at most `tokens` tokens, one a second on average (a replay scales the times): evenly spaced, or a Poisson process."""
    rng = random.Random(seed)
    gaps = [rng.expovariate(1.0) if poisson else 1.0 for _ in range(count - 1)]
    return Workload(
        at_s=np.concatenate([[0.0], np.cumsum(gaps)]),
        paths=("/v1/chat/completions",),
        path=np.zeros(count, np.uint8),
        expected_prompt_tokens=np.full(count, -1, np.int32),
        expected_output_tokens=np.full(count, tokens, np.int32),
        exact=np.zeros(count, np.bool_),
        session=np.full(count, -1, np.int32),
        held_out=0.0,
        tokens=None,
        about={"shape": "short chats", "requests": count, "workload_class": "declared_synthetic", "seed": seed, "arrivals": "poisson" if poisson else "constant"},
        bodies=ShortChats(count, tokens, seed),
    )
