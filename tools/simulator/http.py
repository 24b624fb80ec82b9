"""HTTP/1.1 on raw asyncio protocols: requests in by httptools, one at a time a connection, answers out by `Service`."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

import httptools
import orjson

MAX_BODY = 64 << 20
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 413: "Content Too Large", 500: "Internal Server Error"}


class Service(Protocol):
    """Answers requests. Long ones answer later, through `connection.send`, and call `connection.finished`."""

    def handle(self, connection: Connection, method: str, path: str, query: str, body: bytes) -> None: ...

    def closed(self, connection: Connection) -> None:
        """The client has gone; what it asked for is not wanted any more."""
        ...


class Connection(asyncio.Protocol):
    """One client connection."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._url, self._body = b"", bytearray()
        self._queue: deque[tuple[str, bytes, bytes, bool]] = deque()
        self._busy, self._keep = False, True
        self.answer: object | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # pyright: ignore[reportAttributeAccessIssue]

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._queue.clear()
        self._service.closed(self)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self.reply(400, {"error": {"message": f"not HTTP: {error}", "type": "BadRequestError", "param": None, "code": 400}})
            self.drop()

    def on_message_begin(self) -> None:
        self._url, self._body = b"", bytearray()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if name.lower() == b"expect" and value.lower() == b"100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._body += body
        if len(self._body) > MAX_BODY:
            self.reply(413, {"error": {"message": f"the body is longer than {MAX_BODY} bytes", "type": "BadRequestError", "param": None, "code": 413}})
            self.drop()

    def on_message_complete(self) -> None:
        self._queue.append((self._parser.get_method().decode(), self._url, bytes(self._body), self._parser.should_keep_alive()))
        if not self._busy:
            self._next()

    def _next(self) -> None:
        while self._queue and not self._busy and self._transport is not None:
            method, raw, body, self._keep = self._queue.popleft()
            self._busy = True
            url = httptools.parse_url(raw)
            self._service.handle(self, method, (url.path or b"/").decode("latin-1"), (url.query or b"").decode("latin-1"), body)

    def send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def finished(self) -> None:
        """The answer to the current request is complete."""
        self.answer = None
        self._busy = False
        if not self._keep:
            self.drop()
        elif self._queue:
            self._next()

    def reply(self, status: int, body: object, content_type: str = "application/json") -> None:
        """A whole answer: JSON of `body`, or `body` itself where it is bytes."""
        data = body if isinstance(body, bytes) else orjson.dumps(body)
        head = f"HTTP/1.1 {status} {_REASONS[status]}\r\ncontent-type: {content_type}\r\ncontent-length: {len(data)}\r\n\r\n"
        self.send(head.encode() + data)
        self.finished()

    def drop(self) -> None:
        if self._transport is not None:
            self._transport.close()
