"""What a client sees of the tools: names, schemas, annotations, descriptions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from mcp import Client
from mcp.types import TextContent, Tool

from servewright.mcp_servers.clients import Client as KnownClient
from servewright.mcp_servers.clients import entry
from servewright.mcp_servers.context import Desk
from servewright.mcp_servers.servers import NAMES, make
from servewright.tools.contract.errors import BadInput

WRITES = {  # every tool that changes anything, so that a new one is looked at here
    "campaign_start", "campaign_approve", "campaign_stop", "experiment_baseline_start", "experiment_propose", "experiment_start", "experiment_ask_approval",
    "experiment_stack_start", "experiment_stop", "experiment_close", "ledger_family",
}  # fmt: skip


async def listed(name: str, folder: Path) -> list[Tool]:
    async with Client(make(name, Desk(folder))) as client:
        return (await client.list_tools()).tools


async def test_all_mounts_every_server_under_its_prefix(tmp_path: Path) -> None:
    alone = [f"{name}_{tool.name}" for name in NAMES for tool in await listed(name, tmp_path)]
    together = [tool.name for tool in await listed("all", tmp_path)]
    assert together == alone
    assert len(set(together)) == len(together) <= 30


async def test_schemas_are_closed_bounded_and_typed(tmp_path: Path) -> None:
    for tool in await listed("all", tmp_path):
        assert tool.input_schema["additionalProperties"] is False, tool.name
        assert tool.output_schema is not None, tool.name
        for name, schema in tool.input_schema.get("properties", {}).items():
            assert bounded(schema), f"{tool.name}.{name}: {schema}"


def bounded(schema: dict[str, Any]) -> bool:
    if "anyOf" in schema:
        return all(bounded(one) for one in schema["anyOf"])
    if "$ref" in schema or "allOf" in schema or "enum" in schema or "const" in schema:
        return True
    limits = {
        "string": ("maxLength", "pattern"),
        "integer": ("maximum",),
        "number": ("maximum",),
        "array": ("maxItems",),
        "object": ("maxProperties",),
        "null": ("type",),
        "boolean": ("type",),
    }
    return any(limit in schema for limit in limits[schema["type"]])


async def test_annotations_are_complete_and_writers_are_known(tmp_path: Path) -> None:
    tools = await listed("all", tmp_path)
    for tool in tools:
        hints = tool.annotations
        assert hints is not None and hints.title
        assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
        assert not (hints.read_only_hint and hints.destructive_hint)
    assert {tool.name for tool in tools if not (tool.annotations and tool.annotations.read_only_hint)} == WRITES


async def test_descriptions_say_enough_for_a_model_that_has_never_seen_us(tmp_path: Path) -> None:
    for tool in await listed("all", tmp_path):
        assert tool.description is not None and 40 <= len(tool.description) <= 1100, tool.name
        assert "\n  " not in tool.description


async def test_no_tool_writes_a_verdict_or_leaves_out_a_run(tmp_path: Path) -> None:
    for tool in await listed("all", tmp_path):
        arguments = set(tool.input_schema.get("properties", {}))
        assert not arguments & {"verdict", "effect", "interval", "alpha", "runs", "exclude", "skip", "key", "seed", "pair", "arm", "attempt"}, tool.name
        assert not re.search(r"record|judge|exclude|delete|amend|append", tool.name), tool.name


async def test_no_tool_takes_a_persons_answer_as_an_argument(tmp_path: Path) -> None:
    for tool in await listed("all", tmp_path):
        assert not set(tool.input_schema.get("properties", {})) & {"answer", "approve", "yes", "author"}, tool.name


async def test_prompts_name_tools_that_there_are(tmp_path: Path) -> None:
    async with Client(make("all", Desk(tmp_path))) as client:
        tools = {tool.name for tool in (await client.list_tools()).tools}
        prompts = (await client.list_prompts()).prompts
        assert [prompt.name for prompt in prompts] == ["investigate", "diagnose", "write_hypothesis", "review"]
        for prompt in prompts:
            given = {argument.name: "h-1" for argument in prompt.arguments or [] if argument.required}
            content = (await client.get_prompt(prompt.name, given)).messages[0].content
            assert isinstance(content, TextContent)
            named = set(re.findall(rf"\b(?:{'|'.join(NAMES)})_[a-z_]+", content.text))
            assert named and named <= tools


@pytest.mark.parametrize("client", get_args(KnownClient))
def test_a_clients_settings_start_the_command(tmp_path: Path, client: KnownClient) -> None:
    (servers,) = entry(client, tmp_path, "t1").values()
    assert Path(servers["servewright"]["command"]).is_file()
    assert servers["servewright"]["args"][-4:] == ["--project", str(tmp_path.resolve()), "--thread", "t1"]


def test_an_unknown_server_is_named_with_the_right_ones(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="campaign, config"):
        make("telemetri", Desk(tmp_path))
