"""What a user reads where a file or an argument doesn't fit."""

import errno
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from servewright.tools.contract.endpoint import Endpoint
from servewright.tools.contract.errors import explain, unwritable

GOOD: dict[str, Any] = {
    "name": "t", "engine": {"kind": "sim", "args": {}}, "model": {"name": "m"}, "hardware": {"profile": "h100-sxm"}, "sla": {"ttft_s": 1.0}, "workload": {"trace": "t"},
}  # fmt: skip


def told(**change: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        Endpoint.model_validate(GOOD | change)
    return str(explain(caught.value, "e.yaml"))


@pytest.mark.parametrize("value", [None, [1, 2], {"a": 1}])
def test_a_union_of_scalars_is_one_problem_without_its_branches(value: Any) -> None:
    assert told(engine={"kind": "sim", "args": {"max_num_seqs": value}}) == f"e.yaml: engine.args.max_num_seqs: {value!r} is not usable; expected true or false, a number, or text"


def test_every_union_counts_once() -> None:
    text = told(engine={"kind": "sim", "args": {"int": None, "str": None, "x": None}})
    assert text.startswith("e.yaml: engine.args.int: None") and text.endswith("or text (and 2 more problems)")
    assert told(engine={"kind": "sim", "args": {"x": None, "y": None}}).endswith("(and 1 more problem)")
    assert "a finite number" in told(engine={"kind": "sim", "args": {"x": float("nan")}})


def test_a_key_named_like_a_branch_keeps_its_name() -> None:
    assert told(engine={"kind": "sim", "env": {"str": 3}}) == "e.yaml: engine.env.str: 3 is not usable; expected text"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"engine": {"kind": "tgi"}}, "expected 'sim', 'vllm' or 'sglang'"),
        ({"hardware": {"profile": "x", "gpus": 0}}, "expected a number greater than or equal to 1"),
        ({"hardware": {"profile": "x", "gpus": "two"}}, "hardware.gpus: 'two' is not usable; expected a whole number"),
        ({"engine": None}, "engine: None is not usable; expected a mapping of keys to values"),
        ({"name": "Bad Name"}, "expected text that matches '^[a-z0-9]"),
        ({"model": {}}, "model.name: '(missing)' is not usable; expected a value: this key is required"),
        ({"measurement": {"rates": [3, 1]}}, "expected at least two positive rates"),
        ({"slo": 1}, "no such key here"),
    ],
)
def test_expected_reads_as_a_sentence(change: dict[str, Any], expected: str) -> None:
    text = told(**change)
    assert expected in text and "Input should" not in text and "Value error" not in text


def test_a_full_disk_is_told_apart_from_a_forbidden_folder() -> None:
    full, forbidden = (str(unwritable(Path("/x"), "it", OSError(number, "why"))) for number in (errno.ENOSPC, errno.EACCES))
    assert "/x: it could not be written: why" in full and "make room" in full and "same command again" in full and "another folder" in forbidden
