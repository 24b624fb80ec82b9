"""JSON lines of a trace file, each with its place, so that a bad row can be named."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import orjson

from ..contract.errors import BadInput

GZIP_MAGIC = b"\x1f\x8b"


class Line:
    """One JSON object of a trace and where it stands; its getters raise `BadInput` naming file, line and field."""

    __slots__ = ("number", "path", "value")

    def __init__(self, path: Path, number: int, value: dict[str, Any]) -> None:
        self.path, self.number, self.value = path, number, value

    def refuse(self, field: str, value: object, expected: str) -> NoReturn:
        raise BadInput(f"{self.path}:{self.number}: {field}", value, expected)

    def count(self, field: str, minimum: int) -> int:
        """A whole number of at least `minimum`."""
        value = self.value.get(field, "(missing)")
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value < 2**31:
            self.refuse(field, value, f"a whole number of at least {minimum}")
        return value

    def time(self, field: str, scale: float, after: float) -> float:
        """A finite, non-negative time times `scale`, not before `after` (the row before), in seconds."""
        value = self.value.get(field, "(missing)")
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
            self.refuse(field, value, "a finite time of at least 0")
        seconds = value * scale
        if seconds < after:
            self.refuse(field, value, "times in ascending order (this one is before the row above)")
        return seconds


def json_lines(path: Path) -> Iterator[Line]:
    """Objects of a JSONL file, gzipped or not (told by its first bytes, not its name). Empty lines are passed over."""
    try:
        with path.open("rb") as probe:
            zipped = probe.read(2) == GZIP_MAGIC
        with gzip.open(path, "rb") if zipped else path.open("rb") as stream:
            for number, raw in enumerate(stream, 1):
                if not raw.strip():
                    continue
                try:
                    value = orjson.loads(raw)
                except orjson.JSONDecodeError as error:
                    raise BadInput(f"{path}:{number}", raw[:60].decode("utf-8", "replace"), f"one JSON object a line ({error})") from None
                if not isinstance(value, dict):
                    raise BadInput(f"{path}:{number}", value, "a JSON object")
                yield Line(path, number, value)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error) or error.__class__.__name__
        raise BadInput("trace", str(path), f"a readable trace file ({reason})") from None
