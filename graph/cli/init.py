"""`servewright init`: an endpoint file from the command that serves it today."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Write an endpoint file from a serve command.")


@app.command()
def init(
    command: Annotated[str, typer.Option("--from", help='The command as you run it, in quotes: "vllm serve MODEL --max-num-seqs 64". It is read, never run.')],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Where to write; by default to standard output.")] = None,
    force: Annotated[bool, typer.Option(help="Write over an existing file.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The file's content and the guesses as one JSON object.")] = False,
) -> None:
    """Every guess is marked by a comment; read them before you trust a figure."""
    import json

    from ...tools.contract.errors import BadInput
    from ...tools.serving.reading import endpoint_yaml, read_command

    found = read_command(command)
    text = endpoint_yaml(found)
    if as_json:
        print(json.dumps({"yaml": text, "guesses": [line.strip() for line in text.splitlines() if "# guess" in line], "left_out": list(found.left_out)}))
        if output is None:
            return
    if output is None:
        print(text, end="")
        return
    if output.exists() and not force:
        raise BadInput("--output", str(output), "a file that isn't there yet (or --force)")
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput("--output", str(output), f"a place that can be written to ({error.strerror})") from None
    typer.echo("\n".join([f"wrote {output}", *_to_fill_in(text, output.parent)]), err=as_json)


def _to_fill_in(text: str, folder: Path) -> list[str]:
    """What must be right in the file before another command can use it, by its own lines marked `# guess`."""
    guesses = [(index, line.strip()) for index, line in enumerate(text.splitlines(), 1) if "# guess" in line and ":" in line.partition("# guess")[0]]
    trace = next((line.partition("#")[0].partition(":")[2].strip() for _, line in guesses if line.startswith("trace:")), "")
    told = ["before any other command uses it:"]
    if not (folder / trace).is_file():
        told += [
            f"- workload.trace: {folder / trace} isn't there yet. Put a record of your traffic there (arrival times and lengths), or name another file.",
            f"  A stand-in: servewright trace synth --out {folder / trace}, with workload_class: declared_synthetic",
        ]
    told.append("- the other lines marked '# guess': change what isn't so")
    told += [f"  line {index}: {' '.join(line.removeprefix('# ').split())}" for index, line in guesses if not line.startswith("trace:")]
    return told
