"""Values of engine arguments, brought to their type; and conditions among them."""

from __future__ import annotations

import math
import re

from ..contract.base import Scalar
from ..contract.errors import BadInput
from .types import Knob

_UNSAFE = re.compile(r"[\x00-\x1f\x7f]")


def coerce(knob: Knob, value: object, field: str) -> Scalar:
    """`value` in the knob's type: equal settings become equal values, so that equal arms have equal digests. Raises `BadInput`."""
    result = {"bool": _bool, "int": _int, "float": _float, "str": _str, "choice": _str}[knob.kind](value)
    if result is None:
        raise BadInput(field, value, f"{_wanted(knob)} for {knob.name}")
    if knob.kind == "choice" and result not in knob.choices:
        raise BadInput(field, value, f"one of {', '.join(knob.choices)} for {knob.name}")
    if not isinstance(result, (bool, str)) and ((knob.minimum is not None and result < knob.minimum) or (knob.maximum is not None and result > knob.maximum)):
        raise BadInput(field, value, f"{_wanted(knob)} for {knob.name}")
    if isinstance(result, str) and (_UNSAFE.search(result) or any(part.startswith("-") for part in (result.split() if knob.many else ()))):
        raise BadInput(field, value, f"text for {knob.name} without control characters" + (" or parts that look like flags" if knob.many else ""))
    return result


def holds(condition: str, args: dict[str, Scalar], defaults: dict[str, Scalar | None]) -> bool | None:
    """Whether `name` (set, or on) or `name=value` holds for these arguments; None: the engine decides when it starts."""
    name, equals, wanted = condition.partition("=")
    value = args.get(name, defaults.get(name))
    if value is None:
        return None if equals else name in args
    if not equals:
        return bool(value) if isinstance(value, bool) else True
    return (str(value).lower() if isinstance(value, bool) else str(value)) == wanted


def _wanted(knob: Knob) -> str:
    words = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "text", "choice": f"one of {', '.join(knob.choices)}"}
    low, high = knob.minimum, knob.maximum
    bounds = f" from {low:g} to {high:g}" if low is not None and high is not None else f" of at least {low:g}" if low is not None else f" of at most {high:g}" if high is not None else ""
    return words[knob.kind] + bounds


def _bool(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None


def _int(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value.is_integer() else None
    if isinstance(value, str) and (match := re.fullmatch(r"\s*([+-]?\d{1,18})([kKmMgG]?)\s*", value)):
        # vLLM's own reading: k, m, g are powers of 1000; K, M, G of 1024.
        factors = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "K": 2**10, "M": 2**20, "G": 2**30}
        return int(match[1]) * factors[match[2]]
    return None


def _float(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else math.nan
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _str(value: object) -> str | None:
    if isinstance(value, bool):
        return None
    return value if isinstance(value, str) else f"{value}" if isinstance(value, (int, float)) else None
