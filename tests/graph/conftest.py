"""Campaigns in virtual time through the real tool servers, in this process."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"  # as the command does, before anything imports langgraph

import pytest
from langchain_core.language_models import BaseChatModel
from langgraph.runtime import RunControl

from servewright.graph.bridge import Bridge, connect
from servewright.graph.drive import Ending, Hear, drive
from servewright.graph.models import chat_model
from servewright.mcp_servers.context import Desk
from servewright.mcp_servers.servers import make
from servewright.tools.contract.endpoint import load_endpoint
from servewright.tools.experiment.campaign import Campaign
from servewright.tools.ledger.project import Project

ENDPOINT = """
name: small
engine:
  kind: sim
  args: {args}
model: {{name: llama-3.1-8b}}
hardware: {{profile: l40s}}
sla: {{ttft_s: 2.0, tpot_s: 0.1}}
workload: {{trace: trace.jsonl, format: mooncake}}
measurement: {{mode: virtual, window_s: 2, warmup_s: 0.5, drain_s: 3, floor_runs: 2, max_pairs: 2, screen: none, shams: {shams}}}
permissions: {{lossless: {lossless}}}
budget: {{launches: {launches}}}
minimum_effect: 0.2
"""
BAD = "{max_num_seqs: 6, enable_prefix_caching: true, max_num_batched_tokens: 1024}"
GOOD = "{max_num_seqs: 128, enable_prefix_caching: true, max_num_batched_tokens: 512}"


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVEWRIGHT_STATE", str(tmp_path / "state"))


def endpoint_file(folder: Path, args: str = BAD, *, shams: int = 1, lossless: str = "allow", launches: int = 60) -> Path:
    """An endpoint with a short trace of long prompts; a fifth of their tokens repeat."""
    rows = [
        {"timestamp": n * 250, "input_length": 1024 + 512 * (n % 3), "output_length": 40 + n % 7, "hash_ids": [0, *range(10 * n + 1, 10 * n + 2 + n % 3)]}
        for n in range(160)
    ]
    (folder / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    path = folder / "small.yaml"
    path.write_text(ENDPOINT.format(args=args, shams=shams, lossless=lossless, launches=launches))
    return path


async def nobody(_: Sequence[Any]) -> None:
    return None


def deaf(_: dict[str, Any]) -> None:
    return None


@dataclass
class Whole:
    """One campaign, driven in this process; `go` may be called again to resume it."""

    folder: Path
    endpoint: Path
    thread: str = "t"
    entered: int = 0

    @property
    def campaign(self) -> Campaign:
        return Campaign.open(Project(self.folder), load_endpoint(self.endpoint), self.thread)

    async def go(
        self, model: BaseChatModel | None = None, *, name: str = "playbook", hear: Hear = deaf, answer: Any = nobody, control: RunControl | None = None
    ) -> Ending:
        checkpoints = self.campaign.project.campaign_folder(self.thread) / "checkpoints.db"
        chat = model or chat_model("playbook")
        return await drive(checkpoints, self.thread, self.tools(), chat, model_name=name, hear=hear, answer=answer, control=control or RunControl())

    @asynccontextmanager
    async def tools(self) -> AsyncIterator[Bridge]:
        self.entered += 1
        desk = Desk(self.folder, self.thread)
        try:
            async with connect(make("all", desk), "no log") as bridge:
                yield bridge
        finally:
            assert desk.close()


@pytest.fixture(scope="session")
def crew() -> SimpleNamespace:
    """Names that tests need from here (test folders are no packages)."""
    return SimpleNamespace(Whole=Whole, endpoint_file=endpoint_file, BAD=BAD, GOOD=GOOD)
