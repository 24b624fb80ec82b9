"""The tools on a real campaign in virtual time: from the endpoint to a closed record."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, TextContent

from servewright.mcp_servers.context import Desk
from servewright.mcp_servers.investigations import running
from servewright.mcp_servers.servers import make

from .test_refusals import HYPOTHESIS, text

LOSSY = HYPOTHESIS | {
    "family": "quantisation",
    "title": "eight-bit KV cache",
    "intervention": {"set": {"kv_cache_dtype": "fp8"}},
    "activation": [{"observable": "config.kv_cache_dtype", "op": "==", "value": "fp8"}],
    "lossless": False,
}
Answer = Callable[[Any, ElicitRequestParams], Awaitable[ElicitResult]]


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    assert result.structured_content is not None
    assert isinstance(result.content[0], TextContent) and json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result: CallToolResult = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    assert "internal error" not in text(result)
    return text(result)


async def test_before_anything_is_measured_a_client_can_look_and_check(desk: Desk) -> None:
    async with Client(make("all", desk)) as client:
        endpoint = await call(client, "config_endpoint")
        assert endpoint["args"] == {"max_num_seqs": 4, "enable_prefix_caching": False} and endpoint["sla"]["ttft_s"] == 1.0
        workload = await call(client, "traffic_describe")
        assert workload["trace"] == "trace.jsonl" and workload["figures"]["requests"] == 160
        knobs = await call(client, "config_knobs", contains="max_num_seqs")
        assert [(knob["name"], knob["value"], knob["lossless"]) for knob in knobs["knobs"] if knob["name"] == "max_num_seqs"] == [("max_num_seqs", 4, True)]
        checked = await call(client, "config_check", set={"max_num_seqs": "64"})
        assert checked["changes"] == {"max_num_seqs": [4, 64]} and checked["lossless"] and checked["families"] == ["scheduling"]
        assert checked["activation"][0]["observable"] == "config.max_num_seqs" and checked["activation"][0]["value"] == 64
        assert "max_num_seqs" in await refused(client, "config_check", set={"max_num_sequences": 64})
        assert "must change something" in await refused(client, "config_check")
        assert "baseline_start" in await refused(client, "telemetry_evidence")
        assert "has no result yet" in await refused(client, "experiment_result", job="baseline", wait_s=0)
        assert (await call(client, "experiment_estimate"))["launches"] >= 0
        view = await call(client, "ledger_overview")
        assert view["state"] == "new" and view["hypotheses"] == []
        assert (await call(client, "experiment_simulate", set={"max_num_seqs": 64}))["effect"] > 0


async def test_nothing_tells_which_settings_have_no_effect(desk: Desk) -> None:
    async with Client(make("all", desk)) as client:
        knobs = await client.call_tool("config_knobs", {"limit": 60})
        checked = await client.call_tool("config_check", {"set": {"disable_cascade_attn": False}})
        resource = await client.read_resource("knob://sim/disable_cascade_attn")
    for answer in (text(knobs), text(checked), str(resource)):
        assert "cascade" in answer and "effect" not in answer and "gone" not in answer


async def test_a_hypothesis_is_registered_once_and_made_real(desk: Desk) -> None:
    async with Client(make("all", desk)) as client:
        first = await call(client, "experiment_propose", hypothesis=HYPOTHESIS)
        assert first["state"] == "pending" and first["lossless"]
        assert (await call(client, "experiment_propose", hypothesis=json.dumps(HYPOTHESIS)))["id"] == first["id"]
        made = await call(client, "workspace_prepare", hypothesis_id=first["id"])
        assert made["patch"] == "- max_num_seqs: 4\n+ max_num_seqs: 64"
        assert first["id"] in await refused(client, "experiment_start", hypothesis_id="h-000000000000")
        assert "has no result yet" in await refused(client, "experiment_result", job=first["id"])
        listed = await call(client, "ledger_list", kind="hypothesis")
        assert [entry["summary"] for entry in listed["entries"]] == ["scheduling: more sequences in a step"]
        shown = await call(client, "ledger_show", seq=listed["entries"][0]["seq"])
        assert shown["body"]["hypothesis"]["title"] == HYPOTHESIS["title"]
        fate = await call(client, "ledger_family", family="parallelism", fate="not_applicable", reason="there is one device in this endpoint")
        assert fate == {"family": "parallelism", "fate": "not_applicable", "reason": "there is one device in this endpoint"}


async def test_a_client_that_cannot_ask_is_told_how_to_approve(desk: Desk) -> None:
    async with Client(make("experiment", desk)) as client:
        view = await call(client, "propose", hypothesis=LOSSY)
        assert view["state"] == "needs_approval"
        for tool in ("start", "ask_approval"):
            assert f"servewright approve t1 {view['id']}" in await refused(client, tool, hypothesis_id=view["id"])


def answering(action: str, approve: bool, asked: list[str]) -> Answer:
    async def answer(_: Any, params: ElicitRequestParams) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult.model_validate({"action": action, "content": {"approve": approve} if action == "accept" else None})

    return answer


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize(("action", "approve", "state"), [("accept", True, "pending"), ("accept", False, "denied"), ("decline", True, "denied"), ("cancel", True, "needs_approval")])
async def test_a_person_is_asked_once_and_the_answer_is_recorded(desk: Desk, mode: str, action: str, approve: bool, state: str) -> None:
    asked: list[str] = []
    async with Client(make("experiment", desk), mode=mode, elicitation_callback=answering(action, approve, asked)) as client:
        view = await call(client, "propose", hypothesis=LOSSY)
        result = await client.call_tool("ask_approval", {"hypothesis_id": view["id"]})
    assert len(asked) == 1 and "kv_cache_dtype=fp8" in asked[0] and "LOSSY" in asked[0]
    assert desk.campaign.hypothesis(view["id"]).state == state
    assert result.is_error == (action == "cancel")
    authors = [entry.body["author"] for entry in desk.project.ledger.entries("approval")]
    assert authors == ([] if action == "cancel" else ["mcp-client"])


async def test_what_needs_no_answer_is_not_asked(desk: Desk) -> None:
    asked: list[str] = []
    async with Client(make("experiment", desk), elicitation_callback=answering("accept", False, asked)) as client:
        view = await call(client, "propose", hypothesis=HYPOTHESIS)
        assert (await call(client, "ask_approval", hypothesis_id=view["id"]))["state"] == "pending"
    assert asked == []


async def test_the_campaign_server_reads_a_thread_without_being_started_on_it(desk: Desk) -> None:
    lossy = desk.campaign.propose(hypothesis_of(LOSSY)).id
    async with Client(make("campaign", Desk(desk.folder))) as client:
        status = await call(client, "status", thread="t1")
        assert status["state"] == "new" and not status["running"] and status["waiting_for_a_person"] == [lossy]
        assert "isn't closed" in await refused(client, "result", thread="t1")
        assert "isn't running" in await refused(client, "stop", thread="t1")
        assert f"servewright approve t1 {lossy}" in await refused(client, "approve", thread="t1", hypothesis_id=lossy)
        assert "investigation of this project" in await refused(client, "status", thread="t2")


def hypothesis_of(raw: dict[str, Any]) -> Any:
    from servewright.tools.contract.hypothesis import Hypothesis

    return Hypothesis.model_validate(raw)


async def test_an_investigation_is_started_once_and_stopped(desk: Desk, endpoint_file: Path) -> None:
    folder = desk.folder / "campaigns" / "small"
    async with Client(make("campaign", desk)) as client:
        first = await call(client, "start", endpoint_path=str(endpoint_file))
        assert first["running"] and first["thread"] == "small"
        pid = running(folder)
        assert (await call(client, "start", endpoint_path=str(endpoint_file)))["running"] and running(folder) == pid
        stopped = await call(client, "stop", thread="small")
        assert not stopped["running"] and stopped["state"] != "closed" and "start again" in stopped["next"]


async def test_looking_makes_no_project(tmp_path: Path) -> None:
    async with Client(make("campaign", Desk(tmp_path / "nowhere"))) as client:
        assert "begin one with start" in await refused(client, "status", thread="t1")
        assert "ends in .yaml" not in await refused(client, "start", endpoint_path=str(tmp_path / "none.yaml"))
    assert not (tmp_path / "nowhere" / "ledger.db").exists()
