"""Mooncake's trace format: lengths, and ids of prompt blocks that tell what is shared.

One JSON object a line: `{"timestamp": ms, "input_length": tokens, "output_length": tokens, "hash_ids": [...]}`. A block is 512 tokens, as in the published
traces, unless the file's first line is a header `{"block_tokens": 64}`. Ids are chained (an id stands for its block and all before it), as Mooncake makes them.
Source: https://github.com/kvcache-ai/Mooncake, FAST'25 release.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..contract.errors import BadInput
from .lines import Line, json_lines
from .trace import Trace

BLOCK_TOKENS = 512
COMPLETIONS = "/v1/completions"


def read(path: Path) -> Trace:
    """Read a Mooncake trace. Other keys of a row are passed over."""
    at: list[float] = []
    prompt: list[int] = []
    output: list[int] = []
    blocks: list[np.ndarray] = []
    block_tokens = BLOCK_TOKENS
    for line in json_lines(path):
        if not at and "block_tokens" in line.value and "timestamp" not in line.value:
            block_tokens = line.count("block_tokens", 1)
            continue
        at.append(line.time("timestamp", 1e-3, at[-1] if at else 0.0))
        prompt.append(line.count("input_length", 1))
        output.append(line.count("output_length", 1))
        blocks.append(_ids(line, prompt[-1], block_tokens))
    if not at:
        raise BadInput("trace", str(path), "a trace with at least one request")
    n = len(at)
    return Trace(
        source=path,
        format="mooncake",
        at_s=np.array(at),
        prompt_tokens=np.array(prompt, np.int32),
        output_tokens=np.array(output, np.int32),
        cached_tokens=np.full(n, -1, np.int32),
        block_tokens=block_tokens,
        blocks=blocks,
        paths=[COMPLETIONS] * n,
        bodies=None,
        sessions=[None] * n,
    )


def _ids(line: Line, prompt: int, block_tokens: int) -> np.ndarray:
    ids = line.value.get("hash_ids", "(missing)")
    if not isinstance(ids, list) or not all(type(i) is int and 0 <= i < 2**53 for i in ids):
        line.refuse("hash_ids", ids, "a list of whole numbers of at least 0")
    needed = -(-prompt // block_tokens)
    if len(ids) != needed:
        line.refuse("hash_ids", f"{len(ids)} ids", f"{needed} ids: input_length {prompt} in blocks of {block_tokens} tokens")
    return np.array(ids, np.int64)
