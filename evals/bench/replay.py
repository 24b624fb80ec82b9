"""How fast the replay engine is, against a client that does the least possible, on this machine."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...tools.contract.errors import EngineFailure

NAME = "replay"
SUMMARY = "Sustained rate and processor time of the replay engine against a raw client, client and mock server on a core each"
SUSTAINED, TTFT_MS = 0.98, 50.0


def run(options: list[str]) -> dict[str, Any]:
    """Raw client and ours in turn at each rate. Sustained: completed / offered at least 0.98, and TTFT p99 from the send under 50 ms."""
    parser = argparse.ArgumentParser(prog="servewright bench replay", description=run.__doc__)
    parser.add_argument("--rates", type=float, nargs="+", default=[1000, 2000, 3000, 4000, 5000, 6000], help="offered requests a second")
    parser.add_argument("--duration", type=float, default=4, help="seconds a rate and client")
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args(options)
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
    client, server = cores[0], cores[-1]
    table: list[dict[str, Any]] = []
    with mock_server(server) as port, tempfile.TemporaryDirectory() as folder:
        for _ in range(asked.rounds):
            for rate in asked.rates:
                for name in ("raw", "servewright"):
                    figures = raw(port, rate, asked.duration, client) if name == "raw" else ours(port, rate, asked.duration, client, Path(folder))
                    held = figures["completed_rps"] >= SUSTAINED * rate and figures["ttft_p99_ms"] < TTFT_MS and figures["ok"] == figures["requests"]
                    table.append({"client": name, "offered_rps": rate, **figures, "sustained": held})
    best = {name: max((row["offered_rps"] for row in table if row["client"] == name and row["sustained"]), default=0.0) for name in ("raw", "servewright")}
    cpu = {
        name: [row["cpu_us_per_request"] for row in table if row["client"] == name and row["offered_rps"] <= min(best.values())] for name in ("raw", "servewright")
    }
    ratios = [ours_us / raw_us for ours_us, raw_us in zip(cpu["servewright"], cpu["raw"], strict=True)]
    return {
        "what": "streaming chat, 200-character prompts, 16 tokens an answer, each its own event; JSON of every event parsed",
        "cores": "client and server share one core" if client == server else f"client on core {client}, server on core {server}",
        "table": table,
        "sustained_rps": best,
        "rate_ratio": best["servewright"] / best["raw"] if best["raw"] else None,
        "cpu_ratio_mean": sum(ratios) / len(ratios) if ratios else None,
    }


@contextlib.contextmanager
def mock_server(core: int) -> Iterator[int]:
    """The mock on a core of its own, and its port."""
    command = [sys.executable, "-m", "servewright.evals.bench._stream_mock", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            _pin(process.pid, core)
            line = process.stdout.readline() if process.stdout else ""
            if not line.startswith("listening on "):
                raise EngineFailure("died", f"the mock server did not start: {line.strip()}")
            yield int(line.split()[-1])
        finally:
            process.terminate()


def raw(port: int, rate: float, duration: float, core: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "servewright.evals.bench._raw_client", str(port), str(rate), str(duration)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        _pin(process.pid, core)
        out, _ = process.communicate(timeout=duration + 60)
    if process.returncode:
        raise EngineFailure("died", f"the raw client ended with {process.returncode}")
    return json.loads(out)


def ours(port: int, rate: float, duration: float, core: int, folder: Path) -> dict[str, Any]:
    from ...tools.traffic.frozen import freeze
    from ...tools.traffic.job import ReplayJob
    from ...tools.traffic.replay import run_replay
    from ...tools.traffic.rows import read_rows
    from ...tools.traffic.shapes import short_chats
    from ...tools.traffic.summary import summarise

    workload = freeze(short_chats(int(rate * duration)), folder)
    job = ReplayJob(
        url=f"http://127.0.0.1:{port}",
        model="mock",
        workload=str(workload),
        rates=(rate,),
        window_s=duration,
        drain_s=10,
        cores=(core,),
        rows=str(folder / "rows.parquet"),
    )
    result = run_replay(job)
    workload.unlink()
    if result.rows is None or result.client is None:
        raise EngineFailure("unknown", result.error or "no rows")
    (step,) = summarise(read_rows(Path(result.rows)), None, duration)
    share = result.client.cpu_share
    return {
        "requests": step["requests"],
        "ok": step["ok"],
        "completed_rps": step["completed_rps"],
        "ttft_p99_ms": step["ttft_from_send_ms"]["p99"],
        "lateness_p99_ms": step["lateness_ms"]["p99"],
        "cpu_us_per_request": share * duration / step["requests"] * 1e6,
        "cpu_share": share,
    }


def _pin(pid: int, core: int) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(pid, [core])
