"""The parity probe: how likely the server finds tokens that it is given. Frozen tokens, one forward pass each, nothing sampled."""

from __future__ import annotations

import http.client
from typing import Any

import numpy as np
import orjson

from ..contract.run import Probe
from .prompts import TokenRange, block_ids
from .server import ask

PROBE_BLOCKS = 1 << 40
"""Block ids from here on: no trace's."""


def probe(url: str, model: str, *, vocab: int | None = None, seed: int = 0, probes: int = 6, tokens: int = 48, timeout_s: float = 60) -> Probe:
    """Log-probabilities of `probes` frozen sequences of `tokens` token ids each (the first token has none), by `prompt_logprobs` of /v1/completions.

    The same seed and vocabulary give the same sequences. An engine without prompt log-probabilities gives a probe that says why it is empty.
    """
    found = []
    for ids in probe_ids(vocab, seed, probes, tokens):
        request = {"model": model, "prompt": ids, "max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}
        try:
            status, body = ask(url, "POST", "/v1/completions", orjson.dumps(request), timeout_s)
        except (OSError, http.client.HTTPException) as error:
            return Probe(why_missing=f"no answer to the probe: {type(error).__name__}")
        if status != 200:
            return Probe(why_missing=f"the engine answered a request for prompt log-probabilities with HTTP {status}")
        row = _row(body, ids)
        if isinstance(row, str):
            return Probe(why_missing=row)
        found.append(row)
    return Probe(logprobs=tuple(found))


def probe_ids(vocab: int | None = None, seed: int = 0, probes: int = 6, tokens: int = 48) -> list[list[int]]:
    """The frozen sequences: `probes` lists of `tokens` token ids."""
    allowed = TokenRange.of(vocab)
    return [block_ids(np.array([PROBE_BLOCKS + seed * 4096 + number]), tokens, allowed).tolist() for number in range(probes)]


def _row(body: bytes, ids: list[int]) -> tuple[float, ...] | str:
    """Log-probabilities of the given tokens after the first, or what is wrong with the response."""
    try:
        answer: Any = orjson.loads(body)
        told = answer["choices"][0].get("prompt_logprobs")
        if told is None:
            return "the engine gives no prompt log-probabilities"
        if len(told) != len(ids):
            return f"the engine gave log-probabilities of {len(told)} tokens for a prompt of {len(ids)}"
        return tuple(float(place[str(token)]["logprob"]) for place, token in zip(told[1:], ids[1:], strict=True))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        return f"prompt log-probabilities in a shape that isn't known ({type(error).__name__})"
