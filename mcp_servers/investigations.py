"""An investigation as a process of its own: the command `servewright investigate`, which outlives the server that started it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

import psutil

from ..tools.contract.errors import Refused
from ..tools.ledger.project import Project

Approvals = Literal["park", "deny"]
"""park: what needs a person's yes waits for it while the rest goes on; deny: it is not tried."""
LOG_LINES = 12


def investigate(project: Project, endpoint: Path, thread: str, approvals: Approvals, model: str | None) -> int:
    """Start it, or find it running; returns its process id. Its output goes to `investigate.log` in the campaign's folder."""
    folder = project.campaign_folder(thread)
    if (pid := running(folder)) is not None:
        return pid
    argv = [sys.executable, "-m", "servewright.graph.cli.main", "investigate", str(endpoint.resolve()), "--thread", thread]
    argv += ["--project", str(project.folder), "--approvals", approvals, *(["--model", model] if model else [])]
    with (folder / "investigate.log").open("ab") as log:
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    _remember(folder, process.pid)
    return process.pid


def running(folder: Path) -> int | None:
    """Id of the folder's live process. One that only took over its number doesn't count."""
    try:
        kept = json.loads((folder / "investigate.json").read_text(encoding="utf-8"))
        process = psutil.Process(kept["pid"])
        if abs(process.create_time() - kept["started"]) < 1 and process.status() != psutil.STATUS_ZOMBIE:
            return process.pid
    except (OSError, ValueError, KeyError, psutil.NoSuchProcess):
        return None
    return None


def stop(folder: Path, timeout_s: float = 10) -> bool:
    """Ask it to end after the step it is in; True when it has, within the time."""
    pid = running(folder)
    if pid is None:
        raise Refused("this investigation isn't running; status says how it stands")
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout_s
    while running(folder) is not None and time.monotonic() < deadline:
        time.sleep(0.1)
    return running(folder) is None


def log_tail(folder: Path) -> tuple[str, ...]:
    """The last lines of its output."""
    path = folder / "investigate.log"
    if not path.is_file():
        return ()
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - 8192))
        return tuple(line[:300] for line in log.read().decode(errors="replace").splitlines()[-LOG_LINES:])


def _remember(folder: Path, pid: int) -> None:
    """The process and when it began, so that another process with its number isn't taken for it."""
    try:
        started = psutil.Process(pid).create_time()
    except psutil.NoSuchProcess:
        return
    new = folder / ".investigate.json"
    new.write_text(json.dumps({"pid": pid, "started": started}), encoding="utf-8")
    new.replace(folder / "investigate.json")
