"""The full campaign on the real engine: every figure that the documents quote of it comes from here."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ...tools.contract.errors import BadInput, EngineFailure

NAME = "real"
SUMMARY = "A whole investigation of real vLLM on this machine (examples/vllm-cpu.yaml, or --endpoint FILE): verdicts, launches, wall time"
EXAMPLE = Path(__file__).parents[2] / "examples" / "vllm-cpu.yaml"


def run(options: list[str]) -> dict[str, Any]:
    """`servewright investigate --json` in a project of its own; `--project DIR` keeps the record. Raises `EngineFailure` when it ends with an error."""
    parser = argparse.ArgumentParser(prog="servewright bench real", description=run.__doc__)
    parser.add_argument("--endpoint", type=Path, default=EXAMPLE)
    parser.add_argument("--project", type=Path)
    asked = parser.parse_args(options)
    if not asked.endpoint.is_file():
        raise BadInput("--endpoint", str(asked.endpoint), "an endpoint file (the examples come with a checkout)")
    with tempfile.TemporaryDirectory(prefix="servewright-bench-") as folder:
        return _figures(asked.endpoint, asked.project or Path(folder) / "project")


def _figures(endpoint: Path, project: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "servewright.graph.cli.main"]
    began = time.monotonic()
    done = subprocess.run([*command, "investigate", str(endpoint), "--project", str(project), "--approvals", "park", "--json"], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 10):
        raise EngineFailure("unknown", f"the investigation ended with exit code {done.returncode}", "its last lines above say why")
    told = json.loads(done.stdout)
    view, closing = told["view"], told["closing"]
    verified = subprocess.run([*command, "ledger", "verify", "--project", str(project)], stdout=subprocess.DEVNULL, check=False).returncode == 0
    return {
        "machine": f"{platform.machine()}, {platform.processor() or platform.system()}, Python {platform.python_version()}",
        "endpoint": endpoint.name,
        "engine_build": view["baseline"]["series"]["engine_build"] if view["baseline"] else None,
        "result": closing["sentence"] if closing else "not closed: something waits for a person",
        "wall_s": round(time.monotonic() - began, 1),
        "launches": view["budget"]["launches"],
        "noise_floor_sd": view["baseline"]["floor"]["sd"] if view["baseline"] else None,
        "record_verified": verified,
        "table": [_row(hypothesis) for hypothesis in view["hypotheses"]],
    }


def _row(view: dict[str, Any]) -> dict[str, Any]:
    verdict = view["verdict"] or {}
    return {
        "hypothesis": view["hypothesis"]["title"],
        "verdict": verdict.get("verdict", view["state"]),
        "effect": verdict.get("effect"),
        "interval": " to ".join(f"{end:+.1%}" for end in verdict["interval"]) if verdict.get("interval") else None,
        "pairs": verdict.get("pairs", 0),
    }
