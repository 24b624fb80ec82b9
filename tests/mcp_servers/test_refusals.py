"""What a client is told when a call can't be served: what to do instead, and nothing of our inside."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from servewright.mcp_servers import factory
from servewright.mcp_servers.context import Desk
from servewright.mcp_servers.factory import Toolbox, make_server
from servewright.mcp_servers.servers import make
from servewright.tools.contract.errors import BadInput

HYPOTHESIS = {
    "family": "scheduling",
    "title": "more sequences in a step",
    "explanation": "requests wait while the device idles, since at most two run at once",
    "intervention": {"set": {"max_num_seqs": 64}},
    "prediction": {"low": 0.2, "high": 1.0},
    "falsifiers": [{"observable": "capacity_rps_per_gpu", "arm": "ratio", "op": "<", "value": 1.0}],
    "activation": [{"observable": "config.max_num_seqs", "op": "==", "value": 64}],
}


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("experiment_baseline_start", {}),
        ("experiment_result", {"job": "baseline", "wait_s": 0}),
        ("config_endpoint", {}),
        ("traffic_describe", {}),
        ("telemetry_evidence", {}),
        ("ledger_overview", {}),
        ("workspace_prepare", {"hypothesis_id": "h-1"}),
    ],
)
async def test_without_a_campaign_the_answer_says_how_to_start_one(tmp_path: Path, tool: str, arguments: dict[str, object]) -> None:
    async with Client(make("all", Desk(tmp_path))) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert "servewright mcp serve all --project DIR --thread THREAD" in text(result)


async def test_without_a_project_the_ledger_says_so_and_makes_none(tmp_path: Path) -> None:
    async with Client(make("ledger", Desk(tmp_path / "nowhere"))) as client:
        for tool, arguments in (("list", {}), ("verify", {}), ("show", {"seq": 1})):
            result = await client.call_tool(tool, arguments)
            assert result.is_error and "ledger.db" in text(result)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"falsifiers": []}, "falsifiers"),
        ({"falsifiers": None}, "falsifiers"),
        ({"prediction": None}, "prediction"),
        ({"activation": []}, "activation"),
        ({"falsifiers": [{"observable": "throughput", "op": "<", "value": 1}]}, "a registered observable such as"),
        ({"falsifiers": [{"observable": "ttft_p99_s", "op": ">", "value": 1}]}, "ttft_p99_s@LOAD"),
        ({"intervention": {}}, "must change something"),
        ({"verdict": "supported"}, "no such argument"),
        ({"falsifiers": [{"observable": "preemptions", "arm": "baseline", "op": ">", "value": 1}]}, "at least one must look at the candidate"),
    ],
)
async def test_a_hypothesis_that_cannot_be_refuted_cannot_be_made(tmp_path: Path, change: dict[str, object], said: str) -> None:
    hypothesis = {name: value for name, value in (HYPOTHESIS | change).items() if value is not None}
    async with Client(make("experiment", Desk(tmp_path))) as client:
        result = await client.call_tool("propose", {"hypothesis": hypothesis})
    assert result.is_error
    assert said in text(result) and "pydantic.dev" not in text(result)


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("start", {"hypothesis_id": "h-1", "leave_out_runs": ["r-1"]}, "leave_out_runs: no such argument"),
        ("start", {"hypothesis_id": "h-1", "answer": {"approve": True}}, "answer: no such argument"),
        ("start", {"hypothesis_id": "../../etc"}, "hypothesis_id"),
        ("start", {}, "hypothesis_id"),
        ("result", {"job": "baseline", "wait_s": 3600}, "less than or equal to 30"),
        ("simulate", {"set": {"--max-num-seqs": 64}}, "max-num-seqs"),
        ("record_verdict", {"experiment": "e-1", "verdict": "supported"}, "Unknown tool"),
    ],
)
async def test_arguments_outside_the_schema_are_refused(tmp_path: Path, tool: str, arguments: dict[str, object], said: str) -> None:
    async with Client(make("experiment", Desk(tmp_path))) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error and said in text(result)


async def test_an_unexpected_error_is_masked_and_logged_under_an_id(caplog: pytest.LogCaptureFixture) -> None:
    box = Toolbox("test", prefixed=False)

    @box.tool("Crash")
    def crash() -> str:
        """Fails in a way that nobody foresaw."""
        raise RuntimeError("the password is 1234")

    async with Client(make_server("test", "", box.tools)) as client:
        result = await client.call_tool("crash", {})
    assert result.is_error and "1234" not in text(result)
    name = text(result).split()[2].rstrip(":")
    assert any(name in record.getMessage() for record in caplog.records)


async def test_errors_and_answers_carry_no_home_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(factory.Path, "home", lambda: Path("/home/somebody"))
    box = Toolbox("test", prefixed=False)

    @box.tool("Fail")
    def fail() -> str:
        """Fails with a path in its message."""
        raise BadInput("trace", "/home/somebody/trace.jsonl", "an existing file")

    @box.tool("Answer", reads=True)
    def answer() -> dict[str, str]:
        """Answers with a path."""
        return {"report": "/home/somebody/report.md"}

    async with Client(make_server("test", "", box.tools)) as client:
        failed, answered = await client.call_tool("fail", {}), await client.call_tool("answer", {})
    assert "~/trace.jsonl" in text(failed) and "somebody" not in text(failed)
    assert answered.structured_content == {"report": "~/report.md"} and "somebody" not in text(answered)


async def test_resources_read_knobs_and_refuse_what_is_not_there(tmp_path: Path) -> None:
    from mcp.shared.exceptions import MCPError
    from mcp.types import TextResourceContents

    async with Client(make("config", Desk(tmp_path))) as client:
        found = (await client.read_resource("knob://sim/max_num_seqs")).contents[0]
        assert isinstance(found, TextResourceContents) and '"family": "scheduling"' in found.text
        with pytest.raises(MCPError, match="max_num_seqs"):
            await client.read_resource("knob://sim/max_num_seq")
