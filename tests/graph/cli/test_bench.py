from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import servewright.evals.bench as bench
from servewright.graph.cli.main import main

MODULE = '''
NAME = "adding"
SUMMARY = "adds its options"
def run(options):
    return {"sum": sum(int(option) for option in options), "options": options, "table": [{"n": 1, "value": 0.5}, {"n": 2}]}
'''


@pytest.fixture
def adding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A benchmark of our own in the folder of benchmarks."""
    (tmp_path / "adding.py").write_text(MODULE)
    (tmp_path / "_helper.py").write_text("raise RuntimeError('not a benchmark')")
    monkeypatch.setattr(bench, "__path__", [str(tmp_path)])
    yield
    sys.modules.pop("servewright.evals.bench.adding", None)


def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.mark.usefixtures("adding")
def test_listed_and_run_with_its_own_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert say(capsys, "bench")[1].split(maxsplit=1) == ["adding", "adds its options\n"]
    assert json.loads(say(capsys, "bench", "--json")[1]) == [{"name": "adding", "summary": "adds its options"}]
    code, out, _ = say(capsys, "bench", "adding", "--json", "2", "3")
    assert code == 0 and json.loads(out)["sum"] == 5
    code, out, _ = say(capsys, "bench", "adding", "2", "--", "-3")
    assert code == 0 and out == 'sum: -1\noptions: ["2", "-3"]\nn  value\n1  0.5\n2  -\n'


@pytest.mark.usefixtures("adding")
def test_an_unknown_one_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = say(capsys, "bench", "dividing")
    assert code == 2 and "one of adding" in err


def test_all_that_ship_have_a_name_and_a_summary() -> None:
    known = bench.benchmarks()
    assert len({one.name for one in known}) == len(known)
    assert all(one.summary and callable(one.run) for one in known)
