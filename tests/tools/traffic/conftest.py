"""A small real HTTP server whose answers a test writes byte by byte, in a thread of its own."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable

import pytest

Handler = Callable[[dict, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(payload: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(payload), payload)


def event(value: dict | str) -> bytes:
    return b"data: " + (value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)).encode() + b"\n\n"


def token(text: str, finish: str | None = None) -> bytes:
    return event({"choices": [{"index": 0, "text": text, "finish_reason": finish}]})


def usage(prompt: int, output: int, cached: int = 0) -> bytes:
    told = {"prompt_tokens": prompt, "completion_tokens": output, "prompt_tokens_details": {"cached_tokens": cached}}
    return event({"choices": [], "usage": told})


async def answer(body: dict, writer: asyncio.StreamWriter, pause_s: float = 0.0) -> None:
    """A whole, well-formed answer of max_tokens tokens."""
    count = body.get("max_tokens", 4)
    writer.write(HEAD)
    for k in range(count):
        writer.write(chunk(token(" tök", "length" if k == count - 1 else None)))
        await writer.drain()
        if pause_s:
            await asyncio.sleep(pause_s)
    prompt = body.get("prompt") or body["messages"]
    writer.write(chunk(usage(len(prompt), count)) + chunk(event("[DONE]")) + b"0\r\n\r\n")


class Server:
    """Answers POSTs to /v1/... by `handler`; other paths with an empty `other`. Remembers what it was asked."""

    def __init__(self, handler: Handler = answer) -> None:
        self.handler = handler
        self.bodies: list[dict] = []
        self.paths: list[str] = []
        self.connections = 0
        self.other = b"200 OK"
        self._ready = threading.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)
        self._thread.start()
        assert self._ready.wait(5)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ready.set()
        await self._stop.wait()
        server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0.01)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, _ = head.decode().split(" ", 2)
                length = next((int(line[15:]) for line in head.decode().splitlines() if line.lower().startswith("content-length:")), 0)
                body = await reader.readexactly(length)
                self.paths.append(path)
                if method == "POST" and path.startswith("/v1/"):
                    self.bodies.append(json.loads(body))
                    await self.handler(self.bodies[-1], writer)
                else:
                    writer.write(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % self.other)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(5)


@pytest.fixture
def serve():
    """Start servers that end with the test."""
    started: list[Server] = []

    def start(handler: Handler = answer) -> Server:
        started.append(Server(handler))
        return started[-1]

    yield start
    for server in started:
        server.stop()
