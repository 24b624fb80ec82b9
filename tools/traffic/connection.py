"""One HTTP/1.1 connection of the replay client: writes a request, stamps and reads the stream that answers it, and is used again."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from time import perf_counter
from typing import cast

import httptools
import orjson

from ..contract.rows import Status
from .answer import Answer, reason_of
from .sse import Splitter

ERROR_BODY = 4096


class Connection(asyncio.Protocol):
    """Carries one request at a time. `over(connection, answer)` is called at each request's end; the connection may be used again where `usable`."""

    __slots__ = ("_body", "_feed", "_over", "_parser", "_split", "answer", "idle_since", "now", "transport", "usable", "wire")

    def __init__(self, over: Callable[[Connection, Answer], None]) -> None:
        self._over = over
        self._parser = httptools.HttpResponseParser(self)
        self._feed = self._parser.feed_data
        self._split = Splitter()
        self._body = b""
        self.answer: Answer | None = None
        self.wire: bytes | None = None
        """A request that waits for the connection to be made."""
        self.transport: asyncio.Transport | None = None
        self.usable = True
        self.idle_since = 0.0
        self.now = 0.0

    def start(self, answer: Answer, wire: bytes) -> None:
        """Send a request; waits for the connection where it isn't there yet."""
        self.answer = answer
        if self.transport is None:
            self.wire = wire
        else:
            self.transport.write(wire)

    def abandon(self, status: Status, error: str) -> None:
        """End the request from this side; the connection goes with it."""
        self._end(status, error)
        if self.transport is not None:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if not self.usable:
            self.transport.abort()
            return
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.wire is not None:
            self.transport.write(self.wire)
            self.wire = None

    def data_received(self, data: bytes) -> None:
        self.now = perf_counter()
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.abandon("stream_error", "the response is not HTTP")

    def connection_lost(self, exc: Exception | None) -> None:
        answer = self.answer
        self.usable = False
        if answer is None:
            return
        self.now = perf_counter()
        if answer.http == 200 and answer.done:
            # A body without a length ends with its connection; the stream itself was whole.
            self.answer = None
            answer.finished(self.now)
            self._over(self, answer)
        else:
            self._end("connection_lost", f"connection lost {'mid-stream' if answer.http else 'before a response'}" + (f": {type(exc).__name__}" if exc else ""))

    def on_headers_complete(self) -> None:
        if self.answer is not None:
            self.answer.http = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        answer = self.answer
        if answer is None:
            return
        if answer.http != 200:
            self._body = (self._body + body)[:ERROR_BODY]
            return
        split = self._split
        try:
            if not split.rest and body.endswith(b"\n\n") and body.startswith(b"data: ") and body.find(b"\n") == len(body) - 2 and b"\r" not in body:
                answer.take(body[6:-2], self.now)  # one whole event, by far the most common: no need to split
                return
            for payload in split.feed(body):
                answer.take(payload, self.now)
        except (ValueError, AttributeError, TypeError):
            self.abandon("stream_error", "an event that makes no sense")

    def on_message_complete(self) -> None:
        answer = self.answer
        if answer is None or answer.http is None or answer.http < 200:
            return
        try:
            for payload in self._split.flush() if self._split.rest else ():
                answer.take(payload, self.now)
        except (ValueError, AttributeError, TypeError):
            answer.error = "an event that makes no sense"
        if self._body:
            try:
                answer.error = f"HTTP {answer.http} {reason_of(orjson.loads(self._body))}"
            except orjson.JSONDecodeError:
                answer.error = f"HTTP {answer.http}"
            self._body = b""
        self.answer = None
        answer.finished(self.now)
        if not self._parser.should_keep_alive():
            self.usable = False
        self.idle_since = self.now
        self._over(self, answer)
        if not self.usable and self.transport is not None:
            self.transport.close()

    def _end(self, status: Status, error: str) -> None:
        answer, self.answer = self.answer, None
        self.usable = False
        if answer is not None:
            answer.close(status, perf_counter(), error)
            self._over(self, answer)
