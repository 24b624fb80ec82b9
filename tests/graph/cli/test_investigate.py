"""The command itself: killed with -9 in the middle and resumed; bad input; signals."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from langgraph.runtime import RunControl

from servewright.graph.cli.investigate import DONE
from servewright.graph.cli.main import main
from servewright.graph.drive import draining
from servewright.tools.contract.errors import BadInput
from servewright.tools.ledger.project import Project
from servewright.tools.ledger.verify import verify

COMMAND = (sys.executable, "-m", "servewright.graph.cli.main")
ENDPOINT = """
name: small
engine: {kind: sim, args: {max_num_seqs: 128, max_num_batched_tokens: 512}}
model: {name: llama-3.1-8b}
hardware: {profile: l40s}
sla: {ttft_s: 2.0, tpot_s: 0.1}
workload: {trace: trace.jsonl, format: mooncake}
measurement: {mode: virtual, window_s: 2, warmup_s: 0.5, drain_s: 3, floor_runs: 2, max_pairs: 2, screen: none, shams: 2}
minimum_effect: 0.2
"""


@pytest.fixture
def endpoint(tmp_path: Path) -> Path:
    rows = [{"timestamp": n * 250, "input_length": 1024, "output_length": 40 + n % 7, "hash_ids": [10 * n, 10 * n + 1]} for n in range(160)]
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "small.yaml").write_text(ENDPOINT)
    return tmp_path / "small.yaml"


def environment(folder: Path) -> dict[str, str]:
    return os.environ | {"SERVEWRIGHT_STATE": str(folder / "state")}


def test_killed_in_the_middle_and_resumed_it_repeats_nothing(endpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVEWRIGHT_STATE", str(tmp_path / "state"))
    folder = tmp_path / "project"
    first = subprocess.Popen(
        [*COMMAND, "investigate", str(endpoint), "--thread", "t", "--project", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(tmp_path),
        stdin=subprocess.DEVNULL,
    )
    assert first.stdout is not None
    for line in first.stdout:
        if line.startswith("experiment on"):
            break
    children = psutil.Process(first.pid).children(recursive=True)
    assert children, "the tools run in a process of their own"
    first.kill()
    first.wait()
    assert not psutil.wait_procs(children, timeout=20)[1], "the tool server ends with its client"
    before = [entry.hash for entry in Project(folder).ledger.entries()]

    second = subprocess.run(
        [*COMMAND, "resume", "t", "--project", str(folder), "--json"], capture_output=True, text=True, env=environment(tmp_path), check=False
    )
    assert second.returncode == DONE, second.stderr
    told = json.loads(second.stdout)
    assert "nothing found" in told["closing"]["sentence"].lower() and told["view"]["state"] == "closed"
    project = Project(folder)
    entries = project.ledger.entries()
    assert [entry.hash for entry in entries][: len(before)] == before
    finished = [entry.body["run"] for entry in entries if entry.kind == "run_finished"]
    assert len(finished) == len(set(finished))
    assert not verify(project).problems


def test_bad_input_starts_nothing_and_says_what_is_wrong(
    endpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    endpoint.write_text(ENDPOINT.replace("max_num_seqs", "max_num_sequences"))
    for arguments, words in (
        (["investigate", str(endpoint)], "max_num_seqs"),
        (["resume", "nobody"], "project"),
        (["investigate", "x.yaml", "--model", "gpt"], "x.yaml"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 2 and words in capsys.readouterr().err
    assert not (tmp_path / ".servewright" / "ledger.db").exists()


@pytest.mark.parametrize(("name", "words"), [("gpt", "provider:name"), ("nobody:x", "provider:name"), ("groq:x", "pip install")])
def test_a_model_that_can_t_be_used_is_bad_input(name: str, words: str) -> None:
    from servewright.graph.models import chat_model

    with pytest.raises(BadInput, match=words):
        chat_model(name)


def test_the_playbook_takes_no_address() -> None:
    from servewright.graph.models import chat_model

    with pytest.raises(BadInput, match="no base URL"):
        chat_model("playbook", "http://127.0.0.1:1")


async def test_the_first_signal_drains_and_the_second_ends_at_once() -> None:
    control, said = RunControl(), []

    async def work() -> None:
        async with draining(control, said.append):
            await asyncio.sleep(30)

    task = asyncio.create_task(work())
    await asyncio.sleep(0.05)
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(0.05)
    assert control.drain_requested and not task.done() and "SIGTERM" in said[0]
    began = time.monotonic()
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 5
