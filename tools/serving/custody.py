"""The owner's end of a keeper: start it, hear it, ask it to let go."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..contract.errors import EngineFailure, Refused
from .environment import base_environment
from .failures import Diagnosis, diagnose
from .keeper import Job
from .leases import Lease, Leases
from .oom import oom_kills
from .paths import state_folder
from .processes import end
from .reaper import reap


class Cancelled(Refused):
    """The asker wanted no more."""


class Custody:
    """One keeper process. `release` is safe to call at any time, and again."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.leases = Leases()
        self.lease_id = ""
        self.lease: Lease | None = None
        self.exit_code: int | None = None
        """Of the engine, once it has ended by itself."""
        self._oom_kills = oom_kills()
        self.errors = state_folder() / f"keeper-{os.getpid()}-{job.port}.log"
        kept = {name: value for name, value in os.environ.items() if name.startswith(("PYTHON", "SERVEWRIGHT_"))}
        with self.errors.open("wb") as errors:
            # A session of its own: Ctrl-C in the terminal reaches the owner, who then asks the keeper.
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__.rpartition(".")[0] + ".keeper"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=base_environment() | kept, start_new_session=True, text=True,
            )  # fmt: skip
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._listen, name="keeper-events", daemon=True).start()
        with contextlib.suppress(BrokenPipeError):
            assert self._process.stdin is not None
            self._process.stdin.write(job.to_json())
            self._process.stdin.close()

    def wait_started(self, cancel: threading.Event | None, progress: Callable[[str], None] | None) -> Lease:
        """The lease, once the engine's process runs. Raises `Refused` naming the holders where the devices stay busy, `Cancelled`, `EngineFailure`."""
        holders = ""
        while True:
            event = self._next(cancel)
            match event and event["event"]:
                case "busy" if event:
                    holders = "; ".join(event["holders"])
                    if progress:
                        progress(f"waiting for {holders}")
                case "leased" if event:
                    self.lease_id = event["lease"]
                case "started" if event:
                    self.lease = Lease.from_json(event["lease"])
                    return self.lease
                case None if holders and not self.lease_id:
                    raise Refused(f"{holders}. Wait until it is done, or give this endpoint other devices (engine.cores)")
                case _:
                    raise EngineFailure("died", f"the keeper could not start the engine: {self._complaint()}", log=self.job.log)

    def ended(self) -> bool:
        """Whether the keeper says that the engine ended, or is gone itself."""
        with contextlib.suppress(queue.Empty):
            while (event := self._events.get_nowait()) is not None:
                if event["event"] == "ended":
                    self.exit_code = event["code"]
            self._events.put(None)
        return self.exit_code is not None or self._process.poll() is not None

    def diagnosis(self, log: str) -> Diagnosis:
        """Why the engine ended, by its log, its exit code and the kernel's count of what it killed since."""
        now = oom_kills()
        return diagnose(log, self.exit_code, kernel_killed=self._oom_kills is not None and now is not None and now > self._oom_kills)

    def lost(self) -> bool:
        """The keeper is gone and never said that the engine ended by itself."""
        return self.ended() and self.exit_code is None and self._process.poll() is not None

    def release(self) -> None:
        """Engine stopped, devices free, keeper gone. Also where the keeper was killed before. Raises `EngineFailure` if something can't be ended."""
        if self.lease_id:
            self.leases.ask_release(self.lease_id)
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(self.job.grace_s + 20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        reap(self.leases)
        if self.lease is not None and self.lease.engine is not None and not end(self.lease.engine, self.lease.mark, grace_s=2.0):
            raise EngineFailure("unknown", f"processes of lease {self.lease_id} can't be ended", log=self.job.log)
        if self._process.stdout is not None:
            self._process.stdout.close()
        with contextlib.suppress(OSError):
            if self.errors.stat().st_size == 0:
                self.errors.unlink()

    def _next(self, cancel: threading.Event | None) -> dict[str, Any] | None:
        while True:
            if cancel is not None and cancel.is_set():
                raise Cancelled("stopped while waiting for the engine to start")
            with contextlib.suppress(queue.Empty):
                return self._events.get(timeout=0.1)

    def _listen(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        with contextlib.suppress(ValueError, OSError):
            for line in stdout:
                with contextlib.suppress(ValueError):
                    self._events.put(json.loads(line))
        self._events.put(None)

    def _complaint(self) -> str:
        time.sleep(0.1)
        lines = [line for line in Path(self.errors).read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
        return lines[-1] if lines else "it ended without a word"
