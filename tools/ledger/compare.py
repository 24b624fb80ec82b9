"""Recorded figures against recomputed ones, field by field."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeGuard

from pydantic import BaseModel

_RELATIVE, _ABSOLUTE = 1e-9, 1e-12
"""Other processors and library versions sum in another order; nothing real is as close as this."""


def differences(record: Any, again: Any) -> list[str]:
    """One line a field that differs, as `path: recorded X, recomputed Y`; empty when all agree. Takes contract types and plain JSON."""
    return [f"{path or 'record'}: recorded {_show(here)}, recomputed {_show(there)}" for path, here, there in _walk(_plain(record), _plain(again), "")]


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


def _walk(here: Any, there: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(here, dict) and isinstance(there, dict):
        for name in sorted({*here, *there}):
            yield from _walk(here.get(name), there.get(name), f"{path}.{name}".lstrip("."))
    elif isinstance(here, list) and isinstance(there, list) and len(here) == len(there):
        for index, (left, right) in enumerate(zip(here, there, strict=True)):
            yield from _walk(left, right, f"{path}[{index}]")
    elif _is_number(here) and _is_number(there):
        if not math.isclose(here, there, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE):
            yield path, here, there
    elif here != there or isinstance(here, bool) != isinstance(there, bool):
        yield path, here, there


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
