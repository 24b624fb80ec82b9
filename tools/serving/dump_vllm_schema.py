"""Prints vLLM's own argument schema as one line of JSON. Run by the Python of an engine's venv (`serving.schema`); it imports nothing of ours.

Shape: `{"version": str, "flags": [{name, option, off, kind, many, choices, default, group, deprecated}, ...]}`.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import argparse
import enum
import json
from importlib.metadata import version
from typing import Any

KINDS = {"int": "int", "float": "float", "human_readable_int": "int", "human_readable_int_or_auto": "int"}


def parser() -> argparse.ArgumentParser:
    """The parser of `vllm serve`, by the interface that the command itself uses."""
    from vllm.entrypoints.cli.serve import ServeSubcommand

    try:
        from vllm.utils.argparse_utils import FlexibleArgumentParser
    except ImportError:  # before 0.12
        from vllm.utils import FlexibleArgumentParser
    return ServeSubcommand().subparser_init(FlexibleArgumentParser().add_subparsers())


def type_name(kind: Any) -> str:
    """Name of an argparse type; of what an "optional" wrapper wraps, where it is one."""
    for cell in getattr(kind, "__closure__", None) or ():
        if callable(cell.cell_contents):
            return type_name(cell.cell_contents)
    return getattr(kind, "__name__", "str")


def scalar(value: Any) -> Any:
    value = value.value if isinstance(value, enum.Enum) else value
    return value if isinstance(value, (bool, int, float, str)) and value != argparse.SUPPRESS else None


def flag(action: argparse.Action, group: str, deprecated: bool) -> dict[str, Any]:
    options = [option for option in action.option_strings if option.startswith("--")]
    switch = isinstance(action, argparse.BooleanOptionalAction) or action.nargs == 0
    return {
        "name": action.dest,
        "option": next((option for option in options if option == "--" + action.dest.replace("_", "-")), options[0]),
        "off": next((option for option in options if option.startswith("--no-")), "") if isinstance(action, argparse.BooleanOptionalAction) else "",
        "kind": "bool" if switch else KINDS.get(type_name(action.type), "str"),
        "many": action.nargs in ("+", "*"),
        "choices": [str(scalar(choice)) for choice in action.choices if choice is not None] if action.choices and not switch else [],
        "default": scalar(action.default),
        "group": group,
        "deprecated": "deprecated" if deprecated else "",
    }


def main() -> None:
    arguments = parser()
    old = getattr(arguments, "_deprecated", set())
    flags = [
        flag(action, group.title or "", action in old or "deprecated" in (action.help or "")[:60].lower())
        for group in arguments._action_groups
        for action in group._group_actions
        if any(option.startswith("--") for option in action.option_strings) and action.dest != "help"
    ]
    print("SCHEMA " + json.dumps({"version": version("vllm"), "flags": sorted(flags, key=lambda item: item["name"])}))


if __name__ == "__main__":
    main()
