"""The least that a client can do: `python -m servewright.evals.bench._raw_client PORT RATE DURATION`.

Bare protocol, one request over and over, the JSON of every event parsed, first and last token stamped; no status, no limits, no failure that it would survive.
What a core can do at best, to hold the replay engine against.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import socket
import sys
from time import perf_counter
from typing import cast

import orjson

PROMPT = ("A quick brown fox jumps over the lazy dog while the rest of the pack looks on. " * 3)[:200]
BODY = json.dumps(
    {"model": "mock", "messages": [{"role": "user", "content": PROMPT}], "max_tokens": 16, "stream": True, "stream_options": {"include_usage": True}}
).encode()
WIRE = b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
LAST = b"0\r\n\r\n"


class Raw(asyncio.Protocol):
    """One connection. A record is [due, sent, first, last, gaps, tokens]."""

    free: list[Raw]
    done: list[list]

    def __init__(self) -> None:
        self.record: list | None = None
        self.rest = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.record is not None:
            self.send(self.record)

    def send(self, record: list) -> None:
        self.record = record
        if self.transport is not None:
            record[1] = perf_counter()
            self.transport.write(WIRE)

    def data_received(self, data: bytes) -> None:
        now, record = perf_counter(), self.record
        if record is None:
            return
        text = self.rest + data if self.rest else data
        at = 0
        while (begin := text.find(b"data: ", at)) >= 0 and (end := text.find(b"\n\n", begin)) >= 0:
            at = end + 2
            if text[begin + 6] == 91:
                continue
            event = orjson.loads(text[begin + 6 : end])
            choices = event["choices"]
            if choices and choices[0]["delta"].get("content"):
                if record[2] is None:
                    record[2] = now
                else:
                    record[4].append(now - record[3])
                record[3] = now
            elif not choices:
                record[5] = event["usage"]["completion_tokens"]
        if text.endswith(LAST):
            self.rest, self.record = b"", None
            self.free.append(self)
            self.done.append(record)
        else:
            self.rest = text[at:]


async def run(port: int, rate: float, duration: float) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    Raw.free, Raw.done = [], []
    for _ in range(max(32, int(rate * 0.04))):
        _, protocol = await loop.create_connection(Raw, "127.0.0.1", port)
        Raw.free.append(protocol)
    count = int(rate * duration)
    connecting = set()
    cpu = _cpu_s()
    begin = perf_counter() + 0.02
    index = 0
    while index < count:
        now = perf_counter()
        while index < count and begin + index / rate <= now:
            record = [begin + index / rate, None, None, None, [], None]
            if Raw.free:
                Raw.free.pop().send(record)
            else:
                fresh = Raw()
                fresh.record = record
                task = loop.create_task(loop.create_connection(lambda fresh=fresh: fresh, "127.0.0.1", port))
                connecting.add(task)
                task.add_done_callback(connecting.discard)
            index += 1
        if index < count:
            await asyncio.sleep(max(begin + index / rate - perf_counter(), 0.001))
    sending = perf_counter() - begin
    cpu = _cpu_s() - cpu
    deadline = perf_counter() + 10
    while len(Raw.done) < count and perf_counter() < deadline:  # noqa: ASYNC110 (the deadline is the point)
        await asyncio.sleep(0.005)
    first = sorted(record[2] - record[1] for record in Raw.done)
    late = sorted(record[1] - record[0] for record in Raw.done)
    return {
        "requests": count,
        "ok": len(Raw.done),
        "completed_rps": len(Raw.done) / (max(record[3] for record in Raw.done) - begin),
        "ttft_p99_ms": first[int(len(first) * 0.99)] * 1e3,
        "lateness_p99_ms": late[int(len(late) * 0.99)] * 1e3,
        "cpu_us_per_request": cpu / count * 1e6,
        "cpu_share": cpu / sending,
    }


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    import uvloop

    gc.collect()
    gc.freeze()
    gc.disable()
    print(json.dumps(uvloop.run(run(int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])))))
