"""`servewright trace`: describe and make traces."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="Describe and make traces.")
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Format(StrEnum):
    auto = "auto"
    mooncake = "mooncake"
    native = "native"


@app.command("describe")
def describe_trace(
    file: Annotated[Path, typer.Argument(help="A trace: Mooncake JSONL or the project's own, gzipped or not.")],
    format: Annotated[Format, typer.Option(help="The trace's format; auto looks at its first row.")] = Format.auto,
    as_json: AsJson = False,
) -> None:
    """What a trace is like: counts, span, lengths, and how much of the prompts is shared."""
    from ...tools.traffic.describe import describe
    from ...tools.traffic.trace import read_trace

    _show(describe(read_trace(file, format.value)), as_json)


@app.command("synth")
def synthesise(
    out: Annotated[Path, typer.Option(help="File to write; a name that ends in .gz is gzipped.")],
    requests: Annotated[int, typer.Option(min=2, help="How many requests.")] = 1000,
    rate: Annotated[float, typer.Option(min=1e-3, help="Mean requests a second.")] = 5.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same file.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Make a declared synthetic trace of a support desk's chat: shared system prompts, several turns, some pasted documents."""
    import gzip

    from ...tools.contract.errors import BadInput
    from ...tools.traffic.describe import describe
    from ...tools.traffic.synth import SupportChat, support_chat
    from ...tools.traffic.trace import read_trace

    text = b"".join(support_chat(SupportChat(requests=requests, rate=rate), seed))
    try:
        out.write_bytes(gzip.compress(text, mtime=0) if out.suffix == ".gz" else text)
    except OSError as error:
        raise BadInput("--out", str(out), f"a file that can be written ({error.strerror})") from None
    _show({"file": str(out), **describe(read_trace(out))}, as_json)


def _show(figures: dict[str, object], as_json: bool) -> None:
    if as_json:
        print(json.dumps(figures))
        return
    width = max(map(len, figures))
    for name, value in figures.items():
        print(f"{name:<{width}}  {'-' if value is None else value}")
