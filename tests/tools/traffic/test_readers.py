import gzip
import json
from pathlib import Path

import pytest

from servewright.tools.contract.errors import BadInput
from servewright.tools.traffic.describe import describe
from servewright.tools.traffic.trace import read_trace

REPO = Path(__file__).resolve().parents[3]
SHARED = REPO.parent / "shared"
ROW = {"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}
NATIVE = {"at": 0.0, "path": "/v1/chat/completions", "body": {"messages": [{"role": "user", "content": "hi"}]}}


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_figures_of_the_published_mooncake_trace() -> None:
    facts = SHARED / "cases" / "traces.json"
    if not facts.is_file():
        pytest.skip("the public traces are not beside the repository")
    expected = json.loads(facts.read_text())["mooncake_conversation"]
    figures = describe(read_trace(SHARED / "traces" / "mooncake_conversation.jsonl.gz"))
    assert {name: figures[name] for name in expected} == expected


def test_format_is_found_by_the_first_row_and_gzip_by_the_first_bytes(tmp_path: Path) -> None:
    plain = write(tmp_path / "plain.jsonl", ROW, {**ROW, "timestamp": 250})
    zipped = tmp_path / "no-suffix"
    zipped.write_bytes(gzip.compress(plain.read_bytes()))
    assert describe(read_trace(plain)) == describe(read_trace(zipped))
    trace = read_trace(write(tmp_path / "native.jsonl", NATIVE, "", {**NATIVE, "at": 0.5, "usage": {"prompt_tokens": 3, "completion_tokens": 2}, "session": "s"}))
    assert (trace.format, trace.at_s.tolist(), trace.output_tokens.tolist(), trace.sessions) == ("native", [0.0, 0.5], [-1, 2], [None, "s"])


def test_a_header_sets_the_block_size(tmp_path: Path) -> None:
    trace = read_trace(write(tmp_path / "t", {"block_tokens": 300}, ROW))
    assert (trace.block_tokens, trace.requests) == (300, 1)


@pytest.mark.parametrize(
    ("rows", "field", "said"),
    [
        (["{"], "t:1", "one JSON object a line"),
        (["[1]"], "t:1", "a JSON object"),
        ([{"a": 1}], "t:1: row", "Mooncake rows"),
        ([ROW, {**ROW, "timestamp": -1}], "t:2: timestamp", "finite"),
        ([ROW, '{"timestamp": NaN, "input_length": 1, "output_length": 1, "hash_ids": [1]}'], "t:2", "JSON"),
        ([ROW, '{"timestamp": 1e999, "input_length": 1, "output_length": 1, "hash_ids": [1]}'], "t:2", "JSON|finite"),
        ([{**ROW, "timestamp": 5}, {**ROW, "timestamp": 4}], "t:2: timestamp", "ascending"),
        ([{**ROW, "input_length": 0}], "t:1: input_length", "at least 1"),
        ([{**ROW, "output_length": "5"}], "t:1: output_length", "whole number"),
        ([{**ROW, "hash_ids": [0]}], "t:1: hash_ids", "2 ids"),
        ([{**ROW, "hash_ids": [0, -1]}], "t:1: hash_ids", "whole numbers"),
        ([NATIVE, {**NATIVE, "at": "soon"}], "t:2: at", "finite"),
        ([NATIVE, {**NATIVE, "extra": 1}], "t:2: row", "only the keys"),
        ([{**NATIVE, "path": "/v1/embeddings"}], "t:1: path", "one of"),
        ([{**NATIVE, "body": {}}], "t:1: body", "messages"),
        ([{**NATIVE, "body": {**NATIVE["body"], "max_tokens": 0}}], "t:1: body.max_tokens", "at least 1"),
        ([{**NATIVE, "usage": {"completion_tokens": -1}}], "t:1: usage.completion_tokens", "at least 0"),
        ([{**NATIVE, "session": 7}], "t:1: session", "text"),
        ([], "trace", "at least one request"),
    ],
)
def test_bad_rows_name_file_line_and_what_would_be_right(tmp_path: Path, rows: list, field: str, said: str) -> None:
    path = write(tmp_path / "t", *rows)
    with pytest.raises(BadInput, match=said) as caught:
        read_trace(path)
    assert field in caught.value.field


def test_a_broken_gzip_and_a_missing_file(tmp_path: Path) -> None:
    cut = tmp_path / "cut.gz"
    cut.write_bytes(gzip.compress(json.dumps(ROW).encode() * 100)[:-20])
    for path in (cut, tmp_path / "absent", tmp_path):
        with pytest.raises(BadInput):
            read_trace(path)
