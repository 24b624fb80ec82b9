"""Server processes of the tests, started by the real command and gone at the end."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

COMMAND = (sys.executable, "-m", "servewright.graph.cli.main", "mcp", "serve")
TOKEN = "a-token-for-the-tests"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def http_server(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Starts a server over HTTP and gives its address once it listens."""
    started: list[subprocess.Popen[bytes]] = []

    def start(name: str, *options: str) -> str:
        port = free_port()
        argv = [*COMMAND, name, "--transport", "http", "--port", str(port), "--project", str(tmp_path / "project"), *options]
        process = subprocess.Popen(argv, env=os.environ | {"TEST_TOKEN": TOKEN}, stdin=subprocess.DEVNULL)
        started.append(process)
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return f"http://127.0.0.1:{port}/mcp"
            except OSError:
                assert process.poll() is None and time.monotonic() < deadline
                time.sleep(0.1)

    yield start
    for process in started:
        process.terminate()
        assert process.wait(30) in (0, -15)
