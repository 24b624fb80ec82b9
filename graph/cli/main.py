"""The command `servewright`: a table of groups, each imported when it is used."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ...tools.contract.errors import ServewrightError

COMMANDS: dict[str, tuple[str, str]] = {
    "investigate": ("investigate:investigate", "Investigate an endpoint: baseline, hypotheses, experiments, verdicts, final stack."),
    "resume": ("investigate:resume", "Go on with an investigation where it stopped."),
    "compare": ("compare:app", "A judged A/B of two configurations, without agents."),
    "approve": ("approve:approve", "Say yes to a change that waits for a person."),
    "deny": ("approve:deny", "Say no to a change that waits for a person."),
    "threads": ("threads:app", "The investigations of a project."),
    "report": ("report:app", "The report of an investigation."),
    "ledger": ("ledger:app", "The record: list, show, verify."),
    "judge": ("judge:app", "Judge your own interleaved measurements from a CSV file."),
    "replay": ("replay:app", "Replay traffic open loop against any endpoint."),
    "trace": ("trace:app", "Describe and make traces."),
    "simulate": ("simulate:app", "Predict an endpoint's figures in virtual time."),
    "init": ("init:app", "Write an endpoint file from a serve command."),
    "doctor": ("doctor:app", "What is here, and what each absence costs."),
    "engines": ("engines:app", "Install and list engines."),
    "mcp": ("mcp:app", "Serve the tools to MCP clients."),
    "bench": ("bench:app", "Run the benchmarks that the documents quote."),
}
"""Command -> (module under this folder : attribute, one-line help)."""


def overview() -> str:
    """The text of `servewright --help`, from the table alone: nothing is imported for it."""
    lines = [f"  {name:<12} {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(
        [
            "Usage: servewright COMMAND [ARGS] ...",
            "",
            "Tunes and repairs LLM serving by experiment, and records no gain that it has not tried to refute.",
            "",
            "Commands:",
            *lines,
            "",
            "Options: -h, --help; --version. 'servewright COMMAND --help' tells more.",
        ]
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command. Ends the process: 0 done, 2 bad input (one message on stderr, no traceback), else as the command's help says."""
    os.environ.setdefault("LANGGRAPH_STRICT_MSGPACK", "true")
    name, *rest = list(sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if name in ("-h", "--help", "help"):
        print(overview())
    elif name == "--version":
        from importlib.metadata import version

        print(f"servewright {version('servewright')}")
    elif name not in COMMANDS:
        _fail(f"no command {name!r}{_near(name)}; see servewright --help", 2)
    else:
        try:
            _command(name)(args=rest, prog_name=f"servewright {name}")
        except ServewrightError as error:
            _fail(str(error), error.exit_code)


def _command(name: str) -> Callable[..., Any]:
    import typer

    module, attribute = COMMANDS[name][0].split(":")
    target = getattr(import_module(f".{module}", __package__), attribute)
    if not isinstance(target, typer.Typer):
        app = typer.Typer()
        app.command(name=name)(target)
        target = app
    target.pretty_exceptions_enable = False
    command: Any = typer.main.get_command(target)
    return command.main


def _near(name: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, COMMANDS, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _fail(message: str, code: int) -> None:
    print(f"servewright: {message}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
