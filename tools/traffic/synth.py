"""Declared synthetic traces, made from a seed: the same seed gives the same file, byte for byte."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

BLOCK_TOKENS = 64


@dataclass(frozen=True)
class SupportChat:
    """A support desk's chat: a few products with a long system prompt each, conversations of several turns, now and then a pasted document.

    Sessions begin by a Poisson process. A turn's prompt is the system prompt, all turns and answers before it, and a new message; after an answer the user reads
    and writes for a while. Lengths are in tokens.
    """

    requests: int = 1000
    rate: float = 5.0
    """Mean requests a second over the trace."""
    systems: tuple[int, ...] = (1984, 1536, 1280, 1024)
    shares: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)
    turns: tuple[int, int] = (1, 6)
    message: tuple[int, int] = (24, 220)
    answer: tuple[int, int] = (50, 250)
    documents: float = 0.08
    """Share of conversations that start with a pasted document of `document` tokens."""
    document: tuple[int, int] = (2400, 4800)
    think_s: tuple[float, float] = (4.0, 25.0)


def support_chat(shape: SupportChat, seed: int) -> Iterator[bytes]:
    """Lines of a Mooncake-format trace with blocks of 64 tokens: a header, then one request a line."""
    rng = random.Random(seed)
    blocks = _Blocks()
    mean_turns = sum(shape.turns) / 2
    # Twice as long as asked for, and the middle taken: at the start no conversation is under way yet.
    requests: list[tuple[float, int, int, list[int]]] = []
    begin, count = 0.0, 0
    while count < 2 * shape.requests:
        begin += rng.expovariate(shape.rate / mean_turns)
        session = list(_session(shape, begin, rng, blocks, count))
        requests += session
        count += len(session)
    requests.sort(key=lambda request: request[0])
    taken = requests[shape.requests // 2 : shape.requests // 2 + shape.requests]
    names: dict[int, int] = {}
    yield orjson.dumps({"block_tokens": BLOCK_TOKENS}) + b"\n"
    for at, prompt, answer, ids in taken:
        row = {
            "timestamp": round((at - taken[0][0]) * 1e3),
            "input_length": prompt,
            "output_length": answer,
            "hash_ids": [names.setdefault(i, len(names)) for i in ids],
        }
        yield orjson.dumps(row) + b"\n"


def _session(shape: SupportChat, at: float, rng: random.Random, blocks: _Blocks, number: int) -> Iterator[tuple[float, int, int, list[int]]]:
    system = rng.choices(range(len(shape.systems)), shape.shares)[0]
    length = shape.systems[system]
    shared = length // BLOCK_TOKENS
    if rng.random() < shape.documents:
        length += rng.randint(*shape.document)
    for _turn in range(rng.randint(*shape.turns)):
        length += rng.randint(*shape.message)
        answer = rng.randint(*shape.answer)
        yield at, length, answer, blocks.of(system, shared, number, length)
        length += answer
        at += answer * 0.02 + rng.uniform(*shape.think_s)


class _Blocks:
    """Chained block ids: whole blocks of a system prompt are its own, whole blocks after it the conversation's, a part block at the end nobody else's."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], int] = {}

    def of(self, system: int, shared: int, session: int, length: int) -> list[int]:
        whole, rest = divmod(length, BLOCK_TOKENS)
        keys = [(0, system, k) if k < shared else (1, session, k) for k in range(whole)]
        if rest:
            keys.append((2, session, length))
        return [self._known.setdefault(key, len(self._known)) for key in keys]
