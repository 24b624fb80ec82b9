"""`servewright judge`: the sequential test on a user's own interleaved measurements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from ...tools.contract.verdict import NoiseFloor

app = typer.Typer()


@app.command()
def judge(
    file: Annotated[Path, typer.Argument(help="CSV with a header: columns baseline and candidate, one pair a line, in the order they were measured.")],
    direction: Annotated[Literal["higher", "lower"], typer.Option(help="Which direction is better.")] = "higher",
    minimum_effect: Annotated[float, typer.Option(help="Smallest change worth having, as a fraction: 0.05 = 5 %.")] = 0.05,
    alpha: Annotated[float, typer.Option(help="Chance to call a change that is none supported, one-sided.")] = 0.05,
    max_pairs: Annotated[int | None, typer.Option(help="You are still measuring: pairs planned at most. The file is then looked at after every pair.")] = None,
    noise: Annotated[Path | None, typer.Option(help="File with identical baseline runs, one figure a line: the noise floor.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Judge interleaved pairs of measurements (raw positive figures, fresh runs): supported, refuted or inconclusive.

    All pairs of the file are taken together, which is right when their number was fixed beforehand. With --max-pairs the test is sequential: run
    it after every pair, at the same --max-pairs, and stop at the first verdict; the error rate holds over all looks.
    """
    from ...tools.judgement import SequentialComparison

    pairs = _pairs(file)
    floor = _noise(noise) if noise else None
    if max_pairs is None:
        comparison = SequentialComparison(alpha, direction, minimum_effect, len(pairs), floor, min_pairs=len(pairs))
    else:
        comparison = SequentialComparison(alpha, direction, minimum_effect, max_pairs, floor)
    decision = comparison.observe(*pairs[0])
    for pair in pairs[1:]:
        if decision.verdict is not None:
            break
        decision = comparison.observe(*pair)
    verdict = decision.verdict or "undecided"
    if as_json:
        figures = {"verdict": verdict, "reason": decision.reason, "effect": decision.effect, "interval": decision.interval, "pairs": decision.pairs, "pairs_in_file": len(pairs)}
        noted = {"sd": floor.sd, "df": floor.df, "drift": floor.drift} if floor else None
        typer.echo(json.dumps({**figures, "alpha": alpha, "minimum_effect": minimum_effect, "direction": direction, "noise": noted}, indent=1))
        return
    typer.echo(f"{verdict}: {decision.reason}")
    if floor:
        typer.echo(f"noise floor: {floor.sd:.2%} ({floor.low:.2%} to {floor.high:.2%}) from {floor.df} degrees of freedom{'; ' + floor.drift if floor.drift else ''}")
    if decision.pairs < len(pairs):
        typer.echo(f"decided at pair {decision.pairs} of {len(pairs)}; the others were not looked at")


def _pairs(file: Path) -> list[tuple[float, float]]:
    import csv

    from ...tools.contract.errors import BadInput

    lines = list(csv.DictReader(_text(file).splitlines()))
    if not lines or not {"baseline", "candidate"} <= {(name or "").strip() for name in lines[0]}:
        raise BadInput(str(file), list(lines[0]) if lines else "", "CSV with a header that names the columns baseline and candidate, and at least one line")
    named = [{(name or "").strip(): value for name, value in line.items()} for line in lines]
    if len(named) < 2:
        raise BadInput(str(file), len(named), "at least two pairs, each on a line of its own")
    return [(_figure(file, number, "baseline", line), _figure(file, number, "candidate", line)) for number, line in enumerate(named, start=2)]


def _figure(file: Path, number: int, name: str, line: dict[str, str | None]) -> float:
    return _number(line.get(name), f"{file}, line {number}: {name}")


def _number(text: str | None, where: str) -> float:
    import math

    from ...tools.contract.errors import BadInput

    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        raise BadInput(where, text, "a positive figure")
    return value


def _noise(file: Path) -> NoiseFloor:
    from ...tools.judgement import noise_floor

    lines = [(number, line.strip().rstrip(",")) for number, line in enumerate(_text(file).splitlines(), start=1) if line.strip()]
    start = 1 if lines and lines[0][1][:1].isalpha() else 0
    return noise_floor([_number(text, f"{file}, line {number}") for number, text in lines[start:]])


def _text(file: Path) -> str:
    from ...tools.contract.errors import BadInput

    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("file", str(file), f"a readable CSV file ({error.__class__.__name__})") from None
