"""Filling the prefix cache before a step (policy `warmed`)."""

from __future__ import annotations

import asyncio
from time import perf_counter

import orjson

from .answer import Answer
from .pool import Pool
from .prompts import freshen
from .wires import Wires
from .workload import Workload

AT_ONCE = 8


async def warm_cache(pool: Pool, wires: Wires, workload: Workload, requests: range, turn: int, patience_s: float) -> None:
    """Send the prompts for one token of answer each, a few at a time: what they leave in the cache doesn't depend on the step's rate.

    Ends after `patience_s` wall seconds without an answer; a server that can't take these will show it in the step.
    """
    ended = asyncio.Semaphore(AT_ONCE)
    pool.on_end = lambda answer: ended.release()
    for request in requests:
        body = workload.bodies[request]
        if workload.tokens is not None and turn:
            body = freshen(body, int(workload.expected_prompt_tokens[request]), workload.tokens, turn)
        if not await _within(ended, patience_s):
            break
        now = perf_counter()
        pool.send(Answer(now), wires.wire(request, _one_token(body)), now)
    for _ in range(AT_ONCE):
        if not await _within(ended, patience_s):
            break
    for connection in list(pool.active):
        connection.abandon("unfinished", "the cache could not be warmed in time")


async def _within(ended: asyncio.Semaphore, patience_s: float) -> bool:
    try:
        await asyncio.wait_for(ended.acquire(), patience_s)
    except TimeoutError:
        return False
    return True


def _one_token(body: bytes | memoryview) -> bytes:
    """The same prompt, asked for a single token."""
    request = orjson.loads(b"{" + bytes(body))
    for limit in ("max_tokens", "max_completion_tokens", "min_tokens"):
        request.pop(limit, None)
    return orjson.dumps(request | {"max_tokens": 1})[1:]
