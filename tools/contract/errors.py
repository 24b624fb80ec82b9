"""What can go wrong, by who can mend it. The command line turns each into an exit code."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

FailureKind = Literal[
    "bad_flag",  # the engine refused its own arguments
    "bad_model",  # model folder, architecture, tokenizer or quantisation not usable
    "out_of_memory",  # at load, at KV profiling or at run time
    "port_taken",  # another process listens where the server should
    "driver_missing",  # no GPU, or no usable driver
    "hung_start",  # alive but not healthy by the deadline
    "died",  # ended by itself, at the start or under load
    "unreachable",  # nothing answers at the address
    "not_installed",  # the engine isn't there
    "unknown",
]
"""Why an engine did not serve."""


class ServewrightError(Exception):
    """Base of all errors that a user reads: no traceback is shown for them."""

    exit_code = 1


class BadInput(ServewrightError):
    """The user's input can't be used. Names the field, the value and what would be right.

    >>> str(BadInput("sla.ttft_s", -1, "a positive number of seconds"))
    'sla.ttft_s: -1 is not usable; expected a positive number of seconds'
    """

    exit_code = 2

    def __init__(self, field: str, value: object, expected: str) -> None:
        self.field, self.value, self.expected = field, value, expected
        shown = repr(value)
        shown = shown if len(shown) <= 120 else shown[:117] + "..."
        super().__init__(f"{field}: {shown} is not usable; expected {expected}")


class Refused(ServewrightError):
    """The rules do not allow it (evidence is missing, budget is spent, a person must say yes first)."""


class EngineFailure(ServewrightError):
    """An engine did not start, or died. `line` is the line of its log that says why."""

    def __init__(self, kind: FailureKind, line: str, hint: str = "", log: str = "") -> None:
        self.kind: FailureKind = kind
        self.line, self.hint, self.log = line, hint, log
        parts = [f"engine failure ({kind}): {line}", hint and f"hint: {hint}", log and f"log: {log}"]
        super().__init__("\n".join(part for part in parts if part))


def unwritable(path: Path, what: str, error: OSError) -> ServewrightError:
    """Why a file of ours could not be written, and what the user does about it."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    mend = "make room there" if full else "let this user write there, or choose another folder"
    return ServewrightError(f"{path}: {what} could not be written: {error.strerror or error}\nhint: {mend}, and run the same command again")


_EXPECTED = {
    "extra_forbidden": "no such key here: remove it or correct its spelling",
    "missing": "a value: this key is required",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "string_type": "text",
    "model_type": "a mapping of keys to values",
    "dict_type": "a mapping of keys to values",
    "list_type": "a list",
    "tuple_type": "a list",
}
_PHRASES = (
    ("Value error, ", ""),
    ("Input should be greater", "a number greater"),
    ("Input should be less", "a number less"),
    ("Input should be ", ""),
    ("String should match pattern ", "text that matches "),
    ("String should have ", "text with "),
    ("Tuple should have ", "a list with "),
    ("List should have ", "a list with "),
    ("Dictionary should have ", "a mapping with "),
)
_BRANCHES = {"bool": "bool_", "int": "int_", "float": "float_", "str": "string_"}
"""Branches of a scalar's union as pydantic adds them to a path -> how the types of their errors begin."""


def explain(error: ValidationError, where: str) -> BadInput:
    """The first problem of a pydantic error as a `BadInput`; further ones are counted in its text."""
    problems: dict[tuple[int | str, ...], list[ErrorDetails]] = {}
    for problem in error.errors(include_url=False):
        problems.setdefault(problem["loc"][:-1] if _of_branch(problem) else problem["loc"], []).append(problem)
    # One that stands alone is no union: a key may be called `str`.
    loc, first = next(iter(problems.items()))
    path = ".".join(str(part) for part in (loc if len(first) > 1 else first[0]["loc"])) or "(top level)"
    more = f" (and {len(problems) - 1} more problem{'s' if len(problems) > 2 else ''})" if len(problems) > 1 else ""
    value = "(missing)" if first[0]["type"] == "missing" else first[0]["input"]
    return BadInput(f"{where}: {path}", value, (_any_of(first) if len(first) > 1 else _expected(first[0])) + more)


def _of_branch(problem: ErrorDetails) -> bool:
    begins = _BRANCHES.get(str(problem["loc"][-1])) if problem["loc"] else None
    return begins is not None and problem["type"].startswith((begins, "finite_number"))


def _any_of(branches: list[ErrorDetails]) -> str:
    if any(branch["type"] == "finite_number" for branch in branches):
        return _EXPECTED["finite_number"]
    names = {str(branch["loc"][-1]) for branch in branches}
    number = "a number" if "float" in names else "a whole number"
    words = ["true or false"] * ("bool" in names) + [number] * bool(names & {"int", "float"}) + ["text"] * ("str" in names)
    return " or ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])}, or {words[-1]}"


def _expected(problem: ErrorDetails) -> str:
    if (known := _EXPECTED.get(problem["type"])) is not None:
        return known
    message = problem["msg"]
    return next((words + message.removeprefix(begin) for begin, words in _PHRASES if message.startswith(begin)), message)
