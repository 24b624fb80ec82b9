"""The client's connections: opened ahead, reused last in first out, as many as the schedule asks for."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import resource
import ssl
from collections.abc import Callable
from time import perf_counter
from urllib.parse import urlsplit

from ..contract.errors import BadInput, EngineFailure
from .answer import Answer
from .connection import Connection

IDLE_LIMIT_S = 2.5
"""Wall seconds after which an idle connection isn't used again: servers close theirs after 5 s or more, and a request sent into that would be lost."""


class Pool:
    """Sends requests over the next free connection, or a new one; there is no limit but the machine's."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
            raise BadInput("url", url, "an address such as http://127.0.0.1:8000")
        self.host = parts.hostname
        self.port = port or (443 if parts.scheme == "https" else 80)
        self.base = parts.path.rstrip("/").removesuffix("/v1")
        self.netloc = parts.netloc.rpartition("@")[2]
        self._ssl = ssl.create_default_context() if parts.scheme == "https" else None
        self._address: tuple[str, int] | None = None
        self._free: list[Connection] = []
        self._connecting: set[asyncio.Task[None]] = set()
        self.active: set[Connection] = set()
        self.opened = 0
        self.refused_since: float | None = None
        """When the first of an unbroken row of refused connects came; None while the server takes them."""
        self.refused = 0
        self.on_end: Callable[[Answer], None] = lambda answer: None
        """Called after each request's end."""

    async def resolve(self) -> None:
        """Find an address of the host that answers. Raises `EngineFailure` (unreachable)."""
        loop = asyncio.get_running_loop()
        problem = "no address"
        try:
            found = await loop.getaddrinfo(self.host, self.port, type=1)
        except OSError as error:
            raise EngineFailure("unreachable", f"{self.host}: {error.strerror}") from None
        for *_, (host, port, *_) in found:
            address = (str(host), int(port))
            try:
                transport, _ = await loop.create_connection(asyncio.Protocol, *address)
            except OSError as error:
                problem = error.strerror or type(error).__name__
                continue
            transport.abort()
            self._address = address
            return
        raise EngineFailure("unreachable", f"{self.host}:{self.port}: {problem}", "is the server running, and is the port right?")

    async def warm(self, count: int) -> None:
        """Have `count` free connections."""
        wanted = count - len(self._free)
        made = [Connection(self._over) for _ in range(max(wanted, 0))]
        await asyncio.gather(*(self._connect(connection) for connection in made))
        now = perf_counter()
        for connection in made:
            if connection.usable:
                connection.idle_since = now
                self._free.append(connection)

    def send(self, answer: Answer, wire: bytes, now: float) -> None:
        """Send one request now, `now` being the time."""
        answer.sent = now
        free = self._free
        while free:
            connection = free.pop()
            if connection.usable:
                if now - connection.idle_since < IDLE_LIMIT_S:
                    break
                connection.usable = False
                if connection.transport is not None:
                    connection.transport.abort()
        else:
            connection = Connection(self._over)
            task = asyncio.get_running_loop().create_task(self._connect(connection))
            self._connecting.add(task)
            task.add_done_callback(self._connecting.discard)
        self.active.add(connection)
        connection.start(answer, wire)

    async def _connect(self, connection: Connection) -> None:
        if self._address is None:
            await self.resolve()
        assert self._address is not None
        self.opened += 1
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: connection, *self._address, ssl=self._ssl, server_hostname=self.host if self._ssl else None
            )
            self.refused, self.refused_since = 0, None
        except OSError as error:
            if isinstance(error, ConnectionRefusedError):
                self.refused += 1
                self.refused_since = self.refused_since or perf_counter()
            ours = error.errno in (errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL)
            name = errno.errorcode.get(error.errno or 0, type(error).__name__)
            connection.abandon("not_sent" if ours else "connection_lost", f"connect: {name}")

    def _over(self, connection: Connection, answer: Answer) -> None:
        self.active.discard(connection)
        if connection.usable:
            self._free.append(connection)
        self.on_end(answer)

    def streaming(self) -> bool:
        """Some request has had the start of a response."""
        return any(c.answer is not None and c.answer.http is not None for c in self.active)

    async def close(self) -> None:
        for connection in self._free:
            if connection.transport is not None:
                connection.transport.abort()
        self._free.clear()
        for task in list(self._connecting):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await asyncio.sleep(0)


def raise_file_limit() -> None:
    """Let the process have as many sockets as the machine allows."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
