"""`servewright judge` as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

CSV = "baseline, candidate\n934,1353\n930,1340\n940,1360\n"


def judge(*arguments: str):
    return subprocess.run([sys.executable, "-m", "servewright.graph.cli.main", "judge", *arguments], capture_output=True, text=True, check=False)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text(CSV)
    return path


def test_a_gain(file, tmp_path):
    floor = tmp_path / "floor.txt"
    floor.write_text("930\n940\n935\n928\n")
    done = judge(str(file), "--noise", str(floor), "--json")
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["verdict"] == "supported" and told["pairs"] == 3 and told["noise"]["df"] == 3


def test_sequentially(file):
    assert "undecided" in judge(str(file), "--max-pairs", "8", "--alpha", "0.000001").stdout


def test_bad_files(file, tmp_path):
    file.write_text("baseline,candidate\n10,fast\n10,11\n")
    done = judge(str(file))
    assert done.returncode == 2 and "line 2" in done.stderr and "Traceback" not in done.stderr
    file.write_text("a,b\n1,2\n")
    assert judge(str(file)).returncode == 2
    assert judge(str(tmp_path / "none.csv")).returncode == 2
