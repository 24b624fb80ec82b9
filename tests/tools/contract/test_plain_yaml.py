"""YAML that a person got wrong: the line, and what would be right there."""

from pathlib import Path

import pytest

from servewright.tools.contract.endpoint import load_endpoint
from servewright.tools.contract.errors import BadInput
from servewright.tools.contract.plain_yaml import read_yaml


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [1, 2\nb: 3\n", "line 2, column 2: 'b: 3' is not usable; expected a ',' or the closing ']'; what is read here began on line 1"),
        ("a: 1\nb: c: d\n", "line 2, column 5: 'b: c: d' is not usable; expected one 'key: value' a line"),
        ("a:\n\tb: 1\n", "line 2, column 1: 'b: 1' is not usable; expected spaces, not tabs"),
        ("a: 1\nb\nc: 2\n", "expected a ':' after the key"),
        ("a: 'x\n", "a quote or a bracket is still open"),
        ("a: 1\n  b: 2\n", "line 2"),
        ("a:\n  b: 1\n c: 2\n", "line 3, column 2: 'c: 2' is not usable; expected the indentation of the lines before"),
        ("a: *b\n", "line 1, column 4: 'a: *b' is not usable; expected an anchor &b before it is used"),
        ("a: !!python/name:os.system\n", "a plain value without a tag"),
        ("a: \x07\n", "line 1, column 4: '\\x07' is not usable; expected printable text"),
        ("a: 2024-99-99\n", "dates and numbers that exist"),
        ("[" * 5000, "nested a few levels deep"),
        ("a: 1\n--- \nb: 2\n", "line 2"),
    ],
)
def test_the_place_and_what_would_be_right(text: str, told: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_yaml(text, "e.yaml")
    assert str(caught.value).startswith("e.yaml: ") and told in str(caught.value) and "\\'" not in str(caught.value)


def test_a_key_twice_is_refused_with_both_lines(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("name: a\nengine:\n  args:\n    max_num_seqs: 8\n    x: 1\n    max_num_seqs: 64\n")
    with pytest.raises(BadInput, match=r"e\.yaml: line 6, column 5: 'max_num_seqs' is not usable; expected every key once; this one is on line 4 already"):
        load_endpoint(path)


def test_merged_keys_may_be_overridden() -> None:
    assert read_yaml("a: &a {x: 1, y: 1}\nb: &b\n  <<: *a\n  x: 2\nc:\n  <<: *b\n  x: 3\n", "e")["c"] == {"x": 3, "y": 1}
