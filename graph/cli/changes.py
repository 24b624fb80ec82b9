"""NAME=VALUE on a command line as an engine argument."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...tools.contract.base import Scalar


def parse_change(text: str) -> tuple[str, Scalar]:
    """Name with underscores, value as YAML reads it. Raises `BadInput`."""
    from ...tools.contract.errors import BadInput
    from ...tools.contract.plain_yaml import read_yaml

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BadInput("--set", text, "NAME=VALUE, such as max_num_seqs=64")
    try:
        read = read_yaml(value, "--set")
    except BadInput:
        raise BadInput("--set", text, "NAME=VALUE with a plain value") from None
    if not isinstance(read, (bool, int, float, str)) or (isinstance(read, float) and not isfinite(read)):
        raise BadInput("--set", text, "true or false, a finite number, or text after the '=' (in quotes where it reads as something else)")
    return name.strip().lstrip("-").replace("-", "_"), read
