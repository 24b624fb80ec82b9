"""YAML as people write it by hand: no tags, no key twice, and errors that name the line."""

from __future__ import annotations

import re
from typing import Any

import yaml

from .errors import BadInput

_WORDS = (
    (r"mapping values are not allowed", "one 'key: value' a line (a value with ': ' in it goes in quotes)"),
    (r"character '\\t'", "spaces, not tabs"),
    (r"could not find expected ':'", "a ':' after the key before this place"),
    (r"expected ',' or '([\]}])'", r"a ',' or the closing '\1'"),
    (r"expected <block end>", "the indentation of the lines before"),
    (r"end of stream|<stream end>", "the text to go on: a quote or a bracket is still open"),
    (r"undefined alias '?([^']*)'?", r"an anchor &\1 before it is used"),
    (r"could not determine a constructor for the tag", "a plain value without a tag"),
    (r"another document", "one document, without a second ---"),
    (r"unhashable key", "a key that is plain text"),
)
"""What the parser says, and what would be right there."""


class _Loader(yaml.SafeLoader):
    def compose_mapping_node(self, anchor: Any) -> Any:
        # here and not in construct_mapping: merges (<<) put keys into a node later that may stand there on purpose
        node = super().compose_mapping_node(anchor)
        lines: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
                continue
            if (name := (key.tag, key.value)) in lines:
                raise _Twice(key.value, lines[name] + 1, key.start_mark)
            lines[name] = key.start_mark.line
        return node


class _Twice(yaml.MarkedYAMLError):
    def __init__(self, key: str, first: int, mark: Any) -> None:
        super().__init__(problem=f"key {key}", problem_mark=mark)
        self.key, self.first = key, first


def read_yaml(text: str, where: str) -> Any:
    """The one document in the text. Raises `BadInput` with line and column, also for a key that is there twice."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except _Twice as error:
        raise BadInput(_place(where, error.problem_mark), error.key, f"every key once; this one is on line {error.first} already") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BadInput(_place(where, mark), _line(text, mark.line if mark else 0), _plain(error)) from None
    except yaml.reader.ReaderError as error:
        at = text[: error.position]
        raise BadInput(f"{where}: line {at.count(chr(10)) + 1}, column {len(at) - at.rfind(chr(10))}", text[error.position : error.position + 1], "printable text") from None
    except RecursionError:
        raise BadInput(where, "deeply nested brackets", "YAML that is nested a few levels deep") from None
    except ValueError as error:  # a date or number that only looks like one
        raise BadInput(where, str(error), "dates and numbers that exist; put other text in quotes") from None


def _place(where: str, mark: Any) -> str:
    return f"{where}: line {mark.line + 1}, column {mark.column + 1}" if mark else where


def _line(text: str, index: int) -> str:
    lines = text.splitlines()
    return lines[min(index, len(lines) - 1)].strip() if lines else ""


def _plain(error: yaml.MarkedYAMLError) -> str:
    problem = error.problem or ""
    said = next((found.expand(words) for pattern, words in _WORDS if (found := re.search(pattern, problem))), f"valid YAML ({problem})")
    begun, mark = error.context_mark, error.problem_mark
    return f"{said}; what is read here began on line {begun.line + 1}" if begun and mark and begun.line != mark.line else said
