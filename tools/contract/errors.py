"""What can go wrong, by who can mend it. The command line turns each into an exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pydantic import ValidationError

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


def explain(error: ValidationError, where: str) -> BadInput:
    """The first problem of a pydantic error as a `BadInput`; further ones are counted in its text."""
    problems = error.errors(include_url=False)
    first = problems[0]
    path = ".".join(str(part) for part in first["loc"]) or "(top level)"
    more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
    expected = "no such key here: remove it or correct its spelling" if first["type"] == "extra_forbidden" else first["msg"]
    value = "(missing)" if first["type"] == "missing" else first["input"]
    return BadInput(f"{where}: {path}", value, expected + more)
