"""A streaming server that does nothing but keep time: `python -m servewright.evals.bench._stream_mock PORT`.

Answers any POST with a chat stream of 16 tokens: the first 2 ms after the request, the others 1 ms apart, each an event, a chunk and a write of its own, then usage
and [DONE]. GET /stats tells how late it was itself, so that a client isn't blamed for it. Shipped so that any machine's ceiling can be found.
"""

from __future__ import annotations

import asyncio
import json
import resource
import socket
import sys
from time import perf_counter
from typing import cast

FIRST_S, GAP_S, TOKENS = 0.002, 0.001, 16
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def _chunk(value: object) -> bytes:
    payload = b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def _pieces() -> list[bytes]:
    base = {"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 1, "model": "mock"}
    tokens = [
        _chunk({**base, "choices": [{"index": 0, "delta": {"content": " tok"}, "logprobs": None, "finish_reason": "length" if k == TOKENS - 1 else None}]})
        for k in range(TOKENS)
    ]
    usage = {"prompt_tokens": 50, "completion_tokens": TOKENS, "total_tokens": 50 + TOKENS, "prompt_tokens_details": {"cached_tokens": 32}}
    end = _chunk({**base, "choices": [], "usage": usage}) + _chunk(b"[DONE]") + b"0\r\n\r\n"
    return [HEAD + tokens[0], *tokens[1:-1], tokens[-1] + end]


class Clock:
    """Writes every token that is due, once a millisecond, to all streams."""

    def __init__(self) -> None:
        self.pieces = _pieces()
        self.streams: list[Stream] = []
        self.late: list[float] = []
        self.requests = 0
        self._loop = asyncio.get_running_loop()
        self._ticking = False

    def add(self, stream: Stream) -> None:
        self.requests += 1
        self.streams.append(stream)
        if not self._ticking:
            self._ticking = True
            self._loop.call_later(GAP_S, self._tick)

    def _tick(self) -> None:
        now, still = perf_counter(), []
        for stream in self.streams:
            if stream.due <= now:
                self.late.append(now - stream.due)
            while stream.due <= now and stream.next < TOKENS:
                stream.transport.write(self.pieces[stream.next])
                stream.next += 1
                stream.due += GAP_S
            if stream.next < TOKENS and not stream.transport.is_closing():
                still.append(stream)
        self.streams = still
        self._ticking = bool(still)
        if still:
            self._loop.call_later(GAP_S, self._tick)

    def stats(self) -> bytes:
        late = sorted(self.late) or [0.0]
        usage = resource.getrusage(resource.RUSAGE_SELF)
        figures = {"requests": self.requests, "late_p99_ms": late[int(len(late) * 0.99)] * 1e3, "cpu_s": usage.ru_utime + usage.ru_stime}
        self.late.clear()
        return json.dumps(figures).encode()


class Stream(asyncio.Protocol):
    """One connection; one request at a time."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._text = clock, b""
        self.due, self.next = 0.0, 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data: bytes) -> None:
        self._text += data
        end = self._text.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._text[:end].lower()
        at = head.find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(self._text) < end + 4 + length:
            return
        self._text = self._text[end + 4 + length :]
        if head.startswith(b"post"):
            self.due, self.next = perf_counter() + FIRST_S, 0
            self._clock.add(self)
        else:
            body = self._clock.stats() if head.startswith(b"get /stats ") else b"{}"
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


async def main(port: int) -> None:
    clock = Clock()
    server = await asyncio.get_running_loop().create_server(lambda: Stream(clock), "127.0.0.1", port, backlog=4096)
    print(f"listening on {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(int(sys.argv[1])))
