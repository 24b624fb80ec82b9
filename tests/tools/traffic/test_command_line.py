import json
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from servewright.graph.cli.main import main

REPO = Path(__file__).resolve().parents[3]


@pytest.fixture
def servewright(capfd):
    """Run the command in this process: its exit code and what it printed."""

    def run(*arguments: object) -> SimpleNamespace:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capfd.readouterr()
        return SimpleNamespace(returncode=ended.value.code or 0, stdout=printed.out, stderr=printed.err)

    return run


def test_describe_and_synth(servewright, tmp_path: Path) -> None:
    made = tmp_path / "t.jsonl.gz"
    told = servewright("trace", "synth", "--out", made, "--requests", 50, "--json")
    assert told.returncode == 0 and json.loads(told.stdout)["requests"] == 50
    figures = json.loads(servewright("trace", "describe", made, "--json").stdout)
    assert figures["block_tokens"] == 64 and 0.3 < figures["prefix_hit_tokens_infinite_cache"] < 1
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"timestamp": -4, "input_length": 3, "output_length": 2, "hash_ids": [0]}\n')
    told = servewright("trace", "describe", bad)
    assert told.returncode == 2 and told.stderr.count("\n") == 1 and f"{bad}:1: timestamp: -4" in told.stderr


def test_replay_of_a_trace_and_of_short_chats(servewright, serve, tmp_path: Path) -> None:
    server = serve()
    kept = tmp_path / "rows.parquet"
    told = servewright("replay", "--url", server.url, "--model", "m", "--rate", 30, "--duration", 0.5, "--ttft", 5, "--rows", kept, "--json")
    assert told.returncode == 0, told.stderr
    figures = json.loads(told.stdout)
    (step,) = figures["steps"]
    assert (step["requests"], step["ok"], step["status"], step["attainment"]) == (15, 15, {"ok": 15}, 1.0)
    assert step["ttft_ms"]["p50"] > 0 and figures["client"]["cpu_share"] > 0 and pl.read_parquet(kept).height == 15
    told = servewright("replay", "--url", server.url + "/v1", "--model", "m", "--rate", 4, "--duration", 1, "--trace", REPO / "examples/traces/support-chat.jsonl")
    assert told.returncode == 0 and "4 of 4 ok" in told.stdout
    assert server.paths[-1] == "/v1/completions" and isinstance(server.bodies[-1]["prompt"][0], int)


def test_replay_says_what_is_wrong_with_its_input(servewright) -> None:
    nothing = servewright("replay", "--url", "http://127.0.0.1:9", "--model", "m", "--rate", 5, "--duration", 1)
    assert nothing.returncode == 2 and "127.0.0.1:9" in nothing.stderr and "Traceback" not in nothing.stderr
    bound = servewright("replay", "--url", "http://127.0.0.1:9", "--model", "m", "--rate", 5, "--ttft", -1)
    assert bound.returncode == 2 and "ttft_s" in bound.stderr
