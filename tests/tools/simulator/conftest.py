"""The embedded engine as a real process, and a client that knows nothing of it."""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest


class Running:
    def __init__(self, *flags):
        command = [sys.executable, "-m", "servewright.tools.simulator.server", "--model", "llama-3.1-8b", "--port", "0", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        self.port = int(line.split("http://127.0.0.1:")[1].split(",")[0])

    def call(self, path, body=None, method=None):
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def json(self, path, body=None, method=None):
        status, data = self.call(path, body, method)
        return status, json.loads(data)

    def metric(self, name):
        lines = self.call("/metrics")[1].decode().splitlines()
        return float(next(line for line in lines if line.startswith(name + "{")).rsplit(" ", 1)[1])

    def stop(self):
        self.process.terminate()
        code = self.process.wait(10)
        self.process.stdout.close()
        self.process.stderr.close()
        return code


@pytest.fixture
def launch():
    started = []

    def start(*flags):
        started.append(Running(*flags))
        return started[-1]

    yield start
    for server in started:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture(scope="module")
def server():
    running = Running("--clock", "50", "--max-num-seqs", "8", "--noise-cv", "0")
    yield running
    if running.process.poll() is None:
        running.stop()


async def _stream(port, body, path="/v1/completions"):
    """One streamed request: (events, seconds at which each arrived), by the wall."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    data = json.dumps({**body, "stream": True, "stream_options": {"include_usage": True}}).encode()
    writer.write(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (path.encode(), len(data), data))
    events, times, buffer = [], [], b""
    try:
        while b"0\r\n\r\n" not in buffer:
            received = await reader.read(65536)
            assert received, "the connection was closed"
            buffer += received
            done, _, rest = buffer.rpartition(b"\n\n")
            for line in done.split(b"\n"):
                if line.startswith(b"data: ") and line[6:7] == b"{":
                    events.append(json.loads(line[6:]))
                    times.append(time.monotonic())
            buffer = rest
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    return events, times


@pytest.fixture(scope="session")
def stream():
    return _stream
