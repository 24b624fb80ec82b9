"""Prompts of token ids for traces that tell only lengths and shared blocks.

Token j of a block is a fixed function of the block's id and j (the finaliser of splitmix64, https://prng.di.unimi.it/splitmix64.c), so that two prompts share exactly
the blocks that the trace says they share, lengths are exact on any engine, and any machine makes the same bytes. All ids of a range have equally many digits: a
prompt's JSON text then has a fixed pitch, which makes rendering it, and making a fresh variant of it, plain arithmetic on arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..contract.errors import BadInput

HEAD = b'"prompt":['
_GOLDEN, _ODD, _MIX1, _MIX2 = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclass(frozen=True)
class TokenRange:
    """Ids from `low` to `low + span - 1`, all of `digits` digits. Clear of the first 256, where vocabularies keep bytes and special tokens."""

    low: int
    span: int
    digits: int

    @classmethod
    def of(cls, vocab: int | None) -> TokenRange:
        """The range for a vocabulary of `vocab` ids; without one, 10000 to 27999, which models in use have."""
        if vocab is None or vocab >= 28_000:
            return cls(10_000, 18_000, 5)
        for low, high, digits in ((10_000, vocab, 5), (1_000, min(vocab, 10_000), 4), (256, min(vocab, 1_000), 3)):
            if high - low >= 500 or (digits == 3 and high - low >= 64):
                return cls(low, high - low, digits)
        raise BadInput("vocab", vocab, "a vocabulary of at least 320 token ids")


@dataclass(frozen=True)
class TokenBodies(Sequence[bytes]):
    """Request bodies, made when asked for. `blocks[i]` are the block ids of request i, `lengths[i]` its prompt's tokens, `outputs[i]` its answer's."""

    blocks: list[NDArray[np.int64]]
    lengths: NDArray[np.int32]
    outputs: NDArray[np.int32]
    block_tokens: int
    tokens: TokenRange

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> bytes:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The body without its opening brace and model, which the replay puts before it."""
        tail = (
            b'],"max_tokens":%d,"min_tokens":%d,"ignore_eos":true,"temperature":0,"stream":true,"stream_options":{"include_usage":true}}'
            % ((int(self.outputs[index]),) * 2)
        )
        return HEAD + render(self.ids(index), self.tokens) + tail

    def ids(self, index: int) -> NDArray[np.int64]:
        """Token ids of prompt `index`, shape (length,)."""
        length = int(self.lengths[index])
        return block_ids(self.blocks[index], self.block_tokens, self.tokens)[:length]


def block_ids(blocks: NDArray[np.int64], block_tokens: int, tokens: TokenRange) -> NDArray[np.int64]:
    """Token ids of whole blocks, shape (len(blocks) * block_tokens,)."""
    z = blocks.astype(np.uint64)[:, None] * _GOLDEN + (np.arange(block_tokens, dtype=np.uint64) + np.uint64(1))[None, :] * _ODD
    z = (z ^ (z >> np.uint64(30))) * _MIX1
    z = (z ^ (z >> np.uint64(27))) * _MIX2
    z ^= z >> np.uint64(31)
    return (z % np.uint64(tokens.span)).astype(np.int64).ravel() + tokens.low


def render(ids: NDArray[np.int64], tokens: TokenRange) -> bytes:
    """Ids as JSON array items: digits, commas between them."""
    return _items(tokens).take(ids - tokens.low).tobytes()[:-1]


@lru_cache(maxsize=4)
def _items(tokens: TokenRange) -> NDArray[np.void]:
    """Each id of the range as its digits and a comma, shape (span,)."""
    text = b"".join(b"%d," % token for token in range(tokens.low, tokens.low + tokens.span))
    return np.frombuffer(text, f"V{tokens.digits + 1}")


def parse(body: bytes | memoryview, length: int, tokens: TokenRange) -> NDArray[np.int64]:
    """The ids that `render` wrote into a body of `TokenBodies`."""
    pitch = tokens.digits + 1
    text = np.frombuffer(body, np.uint8, length * pitch, len(HEAD)).reshape(length, pitch)[:, :-1].astype(np.int64) - ord("0")
    return text @ (10 ** np.arange(tokens.digits - 1, -1, -1))


def freshen(body: bytes | memoryview, length: int, tokens: TokenRange, turn: int) -> bytes:
    """The body of the same request in another pass: every id moved by a fixed step, so that sharing within a pass stays and none is left across passes."""
    step = int(tokens.span * 0.6180339887) * turn
    ids = (parse(body, length, tokens) - tokens.low + step) % tokens.span + tokens.low
    end = len(HEAD) + length * (tokens.digits + 1) - 1
    return HEAD + render(ids, tokens) + bytes(body[end:])
