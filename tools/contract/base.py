"""The base of all contract types, and the one canonical encoding that digests are taken of."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel, ConfigDict

Scalar = bool | int | float | str
"""A value of an engine argument as YAML gives it."""


class Contract(BaseModel):
    """Strict and frozen: unknown keys are refused, NaN and infinities too."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no white space: the same value gives the same bytes on any machine."""
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def digest(value: Any) -> str:
    """SHA-256 (hex) of `canonical(value)`."""
    return hashlib.sha256(canonical(value)).hexdigest()
