"""Where things lie on this machine, outside any project."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Engines and models that `servewright engines install` made: `SERVEWRIGHT_CACHE`, or `~/.cache/servewright`."""
    return Path(os.environ.get("SERVEWRIGHT_CACHE") or "~/.cache/servewright").expanduser()


def state_folder() -> Path:
    """Leases of this machine and logs of their keepers: `SERVEWRIGHT_STATE`, or `~/.local/state/servewright`. Made on demand, for this user only."""
    folder = Path(os.environ.get("SERVEWRIGHT_STATE") or "~/.local/state/servewright").expanduser()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder
