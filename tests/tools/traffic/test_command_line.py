import json
import subprocess
import sys
from pathlib import Path

import polars as pl

REPO = Path(__file__).resolve().parents[3]


def servewright(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "servewright.graph.cli.main", *map(str, arguments)], capture_output=True, text=True, timeout=120, check=False)


def test_describe_and_synth(tmp_path: Path) -> None:
    made = tmp_path / "t.jsonl.gz"
    told = servewright("trace", "synth", "--out", made, "--requests", 50, "--json")
    assert told.returncode == 0 and json.loads(told.stdout)["requests"] == 50
    figures = json.loads(servewright("trace", "describe", made, "--json").stdout)
    assert figures["block_tokens"] == 64 and 0.3 < figures["prefix_hit_tokens_infinite_cache"] < 1
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"timestamp": -4, "input_length": 3, "output_length": 2, "hash_ids": [0]}\n')
    told = servewright("trace", "describe", bad)
    assert told.returncode == 2 and told.stderr.count("\n") == 1 and f"{bad}:1: timestamp: -4" in told.stderr


def test_replay_of_a_trace_and_of_short_chats(serve, tmp_path: Path) -> None:
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


def test_replay_says_what_is_wrong_with_its_input() -> None:
    nothing = servewright("replay", "--url", "http://127.0.0.1:9", "--model", "m", "--rate", 5, "--duration", 1)
    assert nothing.returncode == 2 and "127.0.0.1:9" in nothing.stderr and "Traceback" not in nothing.stderr
    bound = servewright("replay", "--url", "http://127.0.0.1:9", "--model", "m", "--rate", 5, "--ttft", -1)
    assert bound.returncode == 2 and "ttft_s" in bound.stderr
