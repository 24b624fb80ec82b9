"""Server processes of the tests, started by the real command and gone at the end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from servewright.mcp_servers.context import Desk

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


ENDPOINT = """
name: small
engine:
  kind: sim
  args: {max_num_seqs: 4, enable_prefix_caching: false}
model: {name: llama-3.1-8b}
hardware: {profile: h100-sxm}
sla: {ttft_s: 1.0, tpot_s: 0.03}
workload: {trace: trace.jsonl, format: mooncake}
measurement: {mode: virtual, window_s: 6, warmup_s: 1, drain_s: 6, floor_runs: 2, max_pairs: 3, screen: none, shams: 1}
minimum_effect: 0.05
"""


@pytest.fixture
def endpoint_file(tmp_path: Path) -> Path:
    """A badly configured endpoint in virtual time, with a short trace."""
    rows = [
        {"timestamp": number * 250, "input_length": 1024 + 512 * (number % 3), "output_length": 64 + number % 7, "hash_ids": [0, *range(10 * number + 1, 10 * number + 2 + number % 3)]}
        for number in range(160)
    ]
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = tmp_path / "small.yaml"
    path.write_text(ENDPOINT)
    return path


@pytest.fixture
def desk(tmp_path: Path, endpoint_file: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A campaign on it, in a project of its own."""
    monkeypatch.setenv("SERVEWRIGHT_STATE", str(tmp_path / "state"))
    desk = Desk(tmp_path / "project", "t1", endpoint_file)
    yield desk
    assert desk.close()
