"""NAME=VALUE on a command line as an engine argument."""

from __future__ import annotations

from typing import Any


def parse_change(text: str) -> tuple[str, Any]:
    """Name with underscores, value as YAML reads it. Raises `BadInput`."""
    import yaml

    from ...tools.contract.errors import BadInput

    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise BadInput("--set", text, "NAME=VALUE, such as max_num_seqs=64")
    try:
        return name.strip().lstrip("-").replace("-", "_"), yaml.safe_load(value)
    except yaml.YAMLError:
        raise BadInput("--set", text, "NAME=VALUE with a plain value") from None
