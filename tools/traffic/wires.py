"""The bytes of each request, ready before the clock starts."""

from __future__ import annotations

from collections.abc import Callable

import orjson
from numpy.typing import NDArray

from .prompts import freshen
from .workload import Workload


class Wires:
    """Joins a request's head, the model's name and its mapped body."""

    def __init__(self, workload: Workload, model: str, netloc: str, base: str) -> None:
        self._workload = workload
        self._open = b'{"model":' + orjson.dumps(model) + b","
        self._heads = [
            f"POST {base}{path} HTTP/1.1\r\nHost: {netloc}\r\nUser-Agent: servewright\r\nAccept: text/event-stream\r\n"
            f"Content-Type: application/json\r\nContent-Length: ".encode()
            for path in workload.paths
        ]

    def wire(self, request: int, body: bytes | memoryview) -> bytes:
        """One whole HTTP request."""
        opened = self._open
        return b"%b%d\r\n\r\n%b%b" % (self._heads[self._workload.path[request]], len(opened) + len(body), opened, body)

    def of(self, requests: NDArray, turns: NDArray) -> Callable[[int], bytes]:
        """Request i of a schedule -> its bytes. Prompts of later turns are made afresh now; all others are copied from the mapped file when they leave."""
        workload, bodies, opened = self._workload, self._workload.bodies, self._open
        index, heads = requests.tolist(), [self._heads[k] for k in workload.path[requests].tolist()]
        tokens, made = workload.tokens, {}
        if tokens is not None:
            lengths = workload.expected_prompt_tokens[requests].tolist()
            for position, turn in enumerate(turns.tolist()):
                if turn:
                    made[position] = freshen(bodies[index[position]], lengths[position], tokens, turn)

        def wire(i: int) -> bytes:
            body = made.get(i) or bodies[index[i]]
            return b"%b%d\r\n\r\n%b%b" % (heads[i], len(opened) + len(body), opened, body)

        return wire
