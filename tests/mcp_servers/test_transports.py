"""The servers as clients meet them: over stdio and HTTP, with a token, and gone when the client or a signal says so."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from servewright.graph.cli.main import main
from servewright.mcp_servers.access import loopback, token_from
from servewright.mcp_servers.context import Desk
from servewright.tools.contract.errors import BadInput

from .conftest import COMMAND, TOKEN

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_stdio_serves_both_wire_versions(tmp_path: Path, mode: str) -> None:
    parameters = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "all", "--project", str(tmp_path)])
    async with Client(stdio_client(parameters), mode=mode) as client:
        assert "experiment_propose" in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("telemetry_observables", {"contains": "capacity"})
        assert result.structured_content is not None
        assert result.structured_content["observables"][0]["name"] == "capacity_rps_per_gpu"
        assert (await client.call_tool("experiment_baseline_start", {})).is_error


def request(url: str, **headers: str) -> int:
    """Status of an initialize request."""
    body = json.dumps(INITIALIZE).encode()
    head = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"} | headers
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, head), timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


async def test_http_needs_the_token_and_a_host_and_origin_of_this_machine(http_server: Callable[..., str]) -> None:
    url = http_server("telemetry", "--token-env", "TEST_TOKEN")
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert request(url) == 401
    assert request(url, Authorization="Bearer wrong") == 401
    assert request(url, Authorization=TOKEN) == 401
    assert request(url, **right) == 200
    assert request(url, Host="evil.example", **right) == 421
    assert request(url, Origin="https://evil.example", **right) == 403
    async with Client(streamable_http_client(url, http_client=httpx2.AsyncClient(headers=right))) as client:
        result = await client.call_tool("devices", {})
        assert result.structured_content is not None and result.structured_content["cpu_cores"] >= 1


def test_http_refuses_to_be_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT", "abc")
    for arguments, field in (((None, "127.0.0.1", False), "--token-env"), ((None, "0.0.0.0", True), "--no-auth"), (("SHORT", "127.0.0.1", False), "--token-env")):
        with pytest.raises(BadInput, match=field):
            token_from(*arguments)
    assert token_from(None, "127.0.0.1", True) is None
    assert [loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "10.0.0.1", "example.org")] == [True, True, True, False, False, False]


@pytest.mark.parametrize("options", [["all", "--transport", "http"], ["nothing"], ["all", "--endpoint", "x.yaml"]])
def test_the_command_refuses_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["mcp", "serve", *options, "--project", str(tmp_path)])
    assert ended.value.code == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


@pytest.mark.parametrize("end", ["eof", "sigterm"])
def test_stdio_ends_with_its_client_or_a_signal(tmp_path: Path, end: str) -> None:
    process = subprocess.Popen([*COMMAND, "config", "--project", str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
    process.stdin.flush()
    assert b'"serverInfo"' in process.stdout.readline()
    began = time.monotonic()
    if end == "eof":
        process.stdin.close()
    else:
        process.send_signal(signal.SIGTERM)
    assert process.wait(20) == (0 if end == "eof" else 128 + signal.SIGTERM)
    assert time.monotonic() - began < 10
    process.stdout.close()
    if end != "eof":
        process.stdin.close()


def test_mcp_list_names_every_server(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["mcp", "list"])
    assert not ended.value.code
    said = capsys.readouterr().out
    assert "experiment: baseline_start" in said and "all: " in said


async def test_a_client_that_goes_ends_what_it_had_started(desk: Desk, endpoint_file: Path) -> None:
    options = ["all", "--project", str(desk.folder), "--thread", "t1", "--endpoint", str(endpoint_file)]
    parameters = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], *options], env=dict(os.environ))
    async with Client(stdio_client(parameters)) as client:
        job = await client.call_tool("experiment_baseline_start", {})
        assert job.structured_content == {"id": "baseline", "kind": "baseline", "state": "running"}
    from servewright.tools.ledger.runs import runs

    assert not [run for run in runs(desk.project, campaign="t1") if run.status == "running" and run.owner.alive()]
