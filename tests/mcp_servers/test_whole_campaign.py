"""A whole campaign through the tools, in virtual time: baseline, every hypothesis, the stack, the close; and the record that comes of it."""

from __future__ import annotations

from typing import Any

from mcp import Client

from servewright.mcp_servers.context import Desk
from servewright.mcp_servers.servers import make

from .test_campaign_tools import call, refused
from .test_refusals import HYPOTHESIS


async def outcome(client: Client, tool: str, heard: list[str], **arguments: Any) -> dict[str, Any]:
    """Start a job and wait for its end."""
    job = await call(client, tool, **arguments)

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    while True:
        answer = await client.call_tool("experiment_result", {"job": job["id"], "wait_s": 5}, progress_callback=progress)
        result = answer.structured_content
        assert result is not None, answer
        if result["status"]["state"] != "running":
            return result


async def test_from_baseline_to_a_closed_record(desk: Desk) -> None:
    heard: list[str] = []
    async with Client(make("all", desk)) as client:
        result = await outcome(client, "experiment_baseline_start", heard)
        assert result["status"]["state"] == "done", result
        assert result["baseline"]["capacity_rps_per_gpu"] > 0 and heard
        async with Client(make("experiment", Desk(desk.folder, "t1"))) as other:  # a server that was started later
            assert (await call(other, "result", job="baseline"))["status"]["state"] == "done"
            assert (await call(other, "baseline_start"))["state"] == "done"
        evidence = await call(client, "telemetry_evidence")
        assert evidence["effective"]["max_num_seqs"] == 4
        assert "may still be tried" in await refused(client, "experiment_close")

        mine = await call(client, "experiment_propose", hypothesis=HYPOTHESIS)
        view = await call(client, "ledger_overview")
        assert len(view["hypotheses"]) == 2 and all(one["state"] == "pending" for one in view["hypotheses"])
        verdicts = {}
        for one in view["hypotheses"]:
            assert (await call(client, "experiment_estimate", hypothesis_id=one["id"]))["affordable"]
            result = await outcome(client, "experiment_start", heard, hypothesis_id=one["id"])
            assert result["status"]["state"] == "done", result
            verdicts[one["id"]] = result["verdict"]["verdict"]
        assert set(verdicts) == {one["id"] for one in view["hypotheses"]}

        runs = len(desk.project.ledger.entries("run_reserved"))
        again = await outcome(client, "experiment_start", heard, hypothesis_id=mine["id"])
        assert again["verdict"]["verdict"] == verdicts[mine["id"]]
        assert len(desk.project.ledger.entries("run_reserved")) == runs

        assert (await outcome(client, "experiment_stack_start", heard))["status"]["state"] == "done"
        closing = await call(client, "experiment_close")
        assert closing["sentence"] and len(closing["shams"]) == 1 and mine["id"] not in closing["shams"]
        assert await call(client, "experiment_close") == closing
        verified = await call(client, "ledger_verify")
        assert verified["intact"], verified["problems"]

    async with Client(make("campaign", Desk(desk.folder))) as client:
        status = await call(client, "status", thread="t1")
        assert status["state"] == "closed" and sum(status["verdicts"].values()) == 2 and status["next"] == "read result"
        assert await call(client, "result", thread="t1") == closing

