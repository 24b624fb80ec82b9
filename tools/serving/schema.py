"""The installed engine's own argument schema, asked from it once and kept."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from importlib import resources
from pathlib import Path
from typing import Any

from ..contract.errors import EngineFailure
from .environment import base_environment
from .failures import diagnose
from .installed import packages
from .paths import cache_folder

DUMP_TIMEOUT_S = 180.0


def vllm_schema(venv: Path) -> dict[str, Any]:
    """What `vllm serve` takes, as `dump_vllm_schema` prints it. Kept by venv, version and age of the venv's vLLM.

    Raises `EngineFailure("not_installed", ...)` where the venv has no working vLLM.
    """
    version = packages(venv, ("vllm",)).get("vllm")
    if version is None:
        raise EngineFailure("not_installed", f"the venv {venv} has no vllm", "install it there, or set engine.installation to a venv that has it")
    script = resources.files(__name__.rpartition(".")[0]).joinpath("dump_vllm_schema.py").read_text(encoding="utf-8")
    name = hashlib.sha256("\0".join((str(venv.resolve()), version, script)).encode()).hexdigest()[:16]
    kept = cache_folder() / "schemas" / f"vllm-{name}.json"
    try:
        return json.loads(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        schema = _ask(venv, script)
    kept.parent.mkdir(parents=True, exist_ok=True)
    temporary = kept.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(schema), encoding="utf-8")
    temporary.replace(kept)
    return schema


def _ask(venv: Path, script: str) -> dict[str, Any]:
    env = base_environment() | {"HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR"}
    try:
        told = subprocess.run([str(venv / "bin" / "python"), "-c", script], env=env, capture_output=True, text=True, timeout=DUMP_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineFailure("not_installed", f"the Python of {venv} does not run: {error.__class__.__name__}") from None
    for line in told.stdout.splitlines():
        if line.startswith("SCHEMA "):
            return json.loads(line.removeprefix("SCHEMA "))
    found = diagnose(told.stderr, told.returncode)
    raise EngineFailure("not_installed", f"vllm in {venv} does not tell its arguments: {found.line}", "is it a complete installation?")
