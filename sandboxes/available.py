"""Which kinds of sandbox this machine offers."""

from __future__ import annotations

import shutil
import subprocess
from typing import NamedTuple

PROBE_TIMEOUT_S = 5.0


class Availability(NamedTuple):
    usable: bool
    found: str
    """Version, or why it can't be used."""


def docker() -> Availability:
    """A Docker daemon that answers this user."""
    return _probe("docker", ["version", "--format", "{{.Server.Version}}"])


def bubblewrap() -> Availability:
    """`bwrap` that may make namespaces here (many containers forbid it)."""
    version = _probe("bwrap", ["--version"])
    if not version.usable:
        return version
    works = _probe("bwrap", ["--ro-bind", "/", "/", "--unshare-all", "--die-with-parent", "true"])
    return version if works.usable else Availability(False, f"{version.found}, but it may not make namespaces here")


def _probe(program: str, arguments: list[str]) -> Availability:
    path = shutil.which(program)
    if path is None:
        return Availability(False, "not installed")
    try:
        told = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Availability(False, f"does not answer ({error.__class__.__name__})")
    lines = (told.stdout if told.returncode == 0 else told.stderr).strip().splitlines()
    return Availability(told.returncode == 0, lines[-1][:120] if lines else "")
