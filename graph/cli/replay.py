"""`servewright replay`: traffic against any endpoint, open loop."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ...tools.contract.sla import SLA
    from ...tools.traffic.job import ReplayProgress, ReplayResult
    from ...tools.traffic.workload import Workload

app = typer.Typer(help="Replay traffic open loop against any endpoint.")


class Policy(StrEnum):
    cold = "cold"
    warmed = "warmed"
    steady = "steady"


@app.command()
def replay(
    url: Annotated[str, typer.Option(help="The server, such as http://127.0.0.1:8000.")],
    model: Annotated[str, typer.Option(help="The name that the server answers to.")],
    rate: Annotated[list[float], typer.Option(min=1e-6, help="Offered requests a second; several make a ladder.")],
    duration: Annotated[float, typer.Option(min=0.1, help="Measured seconds of every rate.")] = 20.0,
    trace: Annotated[Path | None, typer.Option(help="A trace file; without one, short chats of 200 characters and 16 tokens.")] = None,
    warmup: Annotated[float, typer.Option(min=0, help="Seconds before that are replayed and not counted.")] = 0.0,
    drain: Annotated[float, typer.Option(min=0.1, help="Longest wait for answers after the last request.")] = 20.0,
    clock: Annotated[float, typer.Option(min=1, help="Server seconds a wall second (the embedded engine's --clock).")] = 1.0,
    poisson: Annotated[bool, typer.Option("--poisson", help="Short chats arrive as a Poisson process instead of evenly.")] = False,
    seed: Annotated[int, typer.Option(help="Of the short chats.")] = 0,
    vocab: Annotated[int | None, typer.Option(help="Vocabulary for prompts made of token ids.")] = None,
    policy: Annotated[Policy, typer.Option("--cache-policy", help="The prefix cache before every rate.")] = Policy.steady,
    reset_path: Annotated[str | None, typer.Option(help="POST here empties the prefix cache.")] = None,
    timeout: Annotated[float | None, typer.Option(help="Limit for one request, in seconds from its scheduled time.")] = None,
    ttft: Annotated[float | None, typer.Option(help="SLA: seconds to the first token.")] = None,
    tpot: Annotated[float | None, typer.Option(help="SLA: seconds a token after the first.")] = None,
    e2e: Annotated[float | None, typer.Option(help="SLA: seconds to the last token.")] = None,
    rows: Annotated[Path | None, typer.Option(help="Keep the rows in this Parquet file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Send requests on schedule, however slow the server, and report what came back. Latency counts from the scheduled time."""
    import tempfile

    from pydantic import ValidationError

    from ...tools.contract.errors import explain
    from ...tools.traffic.frozen import freeze
    from ...tools.traffic.job import ReplayJob
    from ...tools.traffic.replay import run_replay

    try:
        sla = _sla(ttft, tpot, e2e)
        with tempfile.TemporaryDirectory(prefix="servewright-replay-") as folder:
            job = ReplayJob(
                url=url,
                model=model,
                workload=str(freeze(_workload(trace, max(rate) * (warmup + duration), poisson, seed, vocab), Path(folder))),
                rates=tuple(sorted(rate)),
                sla=sla,
                window_s=duration,
                warmup_s=warmup,
                drain_s=drain,
                clock=clock,
                cache_policy=policy.value,
                reset_path=reset_path,
                rows=str(rows or Path(folder) / "rows.parquet"),
                request_timeout_s=timeout,
            )
            result = run_replay(job, progress=None if as_json else _show_progress)
            _report(result, sla, duration, as_json, rows)
    except ValidationError as error:
        raise explain(error, "replay") from None


def _sla(ttft: float | None, tpot: float | None, e2e: float | None) -> SLA | None:
    from ...tools.contract.sla import SLA

    return SLA(ttft_s=ttft, tpot_s=tpot, e2e_s=e2e) if (ttft, tpot, e2e) != (None, None, None) else None


def _workload(trace: Path | None, requests: float, poisson: bool, seed: int, vocab: int | None) -> Workload:
    from dataclasses import replace

    from ...tools.contract.endpoint import WorkloadSpec
    from ...tools.traffic.shapes import short_chats
    from ...tools.traffic.workload import load_workload

    if trace is None:
        return short_chats(max(2, round(requests)), poisson=poisson, seed=seed)
    return replace(load_workload(WorkloadSpec(trace=str(trace)), vocab), held_out=0.0)


def _show_progress(progress: ReplayProgress) -> None:
    share = f"{progress.ok / progress.ended:6.1%} ok" if progress.ended else "   -   ok"
    print(
        f"\rrate {progress.offered_rps:g}/s ({progress.step + 1}/{progress.steps})  sent {progress.sent}/{progress.planned}  {share}"
        f"  latest send {progress.lateness_s * 1e3:.1f} ms late ",
        end="\n" if progress.step_done else "",
        flush=True,
    )


def _report(result: ReplayResult, sla: SLA | None, window_s: float, as_json: bool, kept: Path | None) -> None:
    from ...tools.contract.errors import BadInput, EngineFailure
    from ...tools.traffic.rows import read_rows
    from ...tools.traffic.summary import summarise

    if result.rows is None:
        if result.error and "(unreachable)" in result.error:
            raise BadInput("--url", result.error.partition(": ")[2].partition("\n")[0], "the address of a running server")
        raise EngineFailure("unknown", result.error or "no step came to its end")
    figures: dict[str, Any] = {
        "steps": summarise(read_rows(Path(result.rows)), sla, window_s),
        "client": result.client.model_dump() if result.client else None,
        "wall_s": round(result.wall_s, 3),
        "stopped_at": result.stopped_at,
        "error": result.error,
        "notes": list(result.notes),
        "rows": str(kept) if kept else None,
    }
    if as_json:
        print(json.dumps(figures))
    else:
        _print(figures)
    if result.stopped_at in ("error", "server_gone"):
        raise typer.Exit(1)


def _print(figures: dict[str, Any]) -> None:
    for step in figures["steps"]:
        print(f"\noffered {step['offered_rps']:g} requests/s: {step['ok']} of {step['requests']} ok, completed {step['completed_rps']:g}/s, {step['output_tokens_per_s']:g} tokens/s")
        if step["within_sla"] is not None:
            print(f"  inside the SLA  {step['within_sla']} ({step['attainment']:.1%})")
        for name in ("ttft", "tpot", "e2e", "lateness"):
            if values := step[f"{name}_ms"]:
                print(f"  {name:<9} ms     " + "  ".join(f"{key} {value:g}" for key, value in values.items()))
        for reason, count in step["errors"].items():
            print(f"  failed          {count} x {reason}")
    if client := figures["client"]:
        print(f"\nclient: {client['cpu_share']:.2f} of a core in the busiest step, {client['connections']} connections")
    for note in [*figures["notes"], *([figures["error"]] if figures["error"] else [])]:
        print(f"note: {note}")
