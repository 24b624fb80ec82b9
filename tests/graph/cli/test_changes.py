"""NAME=VALUE on the command line."""

import subprocess
import sys
from pathlib import Path

import pytest

from servewright.graph.cli.changes import parse_change
from servewright.tools.contract.errors import BadInput

EXAMPLE = Path(__file__).parents[3] / "examples" / "quickstart.yaml"


@pytest.mark.parametrize(
    ("text", "change"),
    [("max-num-seqs=64", ("max_num_seqs", 64)), ("--a=true", ("a", True)), ("a=0.5", ("a", 0.5)), ("a=fp8", ("a", "fp8")), ("a=''", ("a", "")), ('a=\'{"b": 1}\'', ("a", '{"b": 1}'))],
)
def test_scalars_are_taken(text: str, change: tuple[str, object]) -> None:
    assert parse_change(text) == change


@pytest.mark.parametrize("value", ["", "null", "~", "[1, 2]", "{b: 1}", "2024-01-01", "2024-99-99", ".nan", "-.inf", "!!binary aGk=", "[", "b: c", "!!set {a}"])
def test_all_else_is_refused(value: str) -> None:
    with pytest.raises(BadInput, match=r"--set: .*is not usable; expected"):
        parse_change(f"max_num_seqs={value}")


@pytest.mark.parametrize("command", ["compare", "simulate"])
def test_an_empty_value_ends_in_one_line(command: str, tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "servewright.graph.cli.main", command, str(EXAMPLE), "--set", "max_num_seqs="], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert told.returncode == 2 and told.stderr.startswith("servewright: --set: 'max_num_seqs=' is not usable") and "Traceback" not in told.stderr
