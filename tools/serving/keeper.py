"""The keeper: a process of its own that owns one engine and its lease, and outlives whoever asked for it.

Started by `launch` in a session of its own, with its `Job` on standard input; it tells one JSON event a line on standard output:
`{"event": "busy", "holders": [...]}` while it waits, `leased`, `started`, `ended` (with the exit code), `released`.
It stops the engine when the owner dies or asks, when the lease expires, and when it is told to end; a guard that it forks stops the engine
when the keeper itself is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .leases import Lease, Leases
from .processes import Identity, alive, boot_id, end, identify
from .reaper import reap

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
POLL_S = 0.2


@dataclass(frozen=True)
class Job:
    """What a keeper is to do."""

    argv: tuple[str, ...]
    env: dict[str, str]
    """The engine's whole environment."""
    cores: tuple[int, ...]
    devices: tuple[str, ...]
    what: str
    owner: Identity
    log: str
    port: int
    wait_s: float
    """Longest wait for devices that another holds."""
    ttl_s: float
    grace_s: float = 10.0
    """From SIGTERM to SIGKILL."""

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        body = json.loads(text)
        return Job(**(body | {"owner": Identity(**body["owner"])} | {name: tuple(body[name]) for name in ("argv", "cores", "devices")}))


class Keeper:
    def __init__(self, job: Job) -> None:
        self.job = job
        self.leases = Leases()
        self.me = identify()
        self.told_to_end = False

    def run(self) -> int:
        """Wait for the devices, keep the engine, clean up. Returns the exit code: 0 done, 3 the devices stayed busy."""
        lease = self._lease()
        if lease is None:
            return 3
        self._say("leased", lease=lease.id)
        guard = -1
        try:
            hold, held = os.pipe()
            with Path(self.job.log).open("ab", buffering=0) as log:
                engine = self._start(lease, log.fileno(), (hold, held))
            lease = replace(lease, engine=_identity_of(engine), port=self.job.port, log=self.job.log)
            guard = self._fork_guard(lease, hold, held)
            self.leases.update(lease)
            self._say("started", lease=lease.to_json())
            self._watch(lease, engine)
        finally:
            if lease.engine is not None:
                end(lease.engine, lease.mark, self.job.grace_s)
            if guard > 0:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(guard, signal.SIGKILL)
            self.leases.remove(lease.id)
            self._say("released")
            _bury()
        return 0

    def _lease(self) -> Lease | None:
        deadline, told = time.monotonic() + self.job.wait_s, ""
        while not self._must_end():
            reap(self.leases)
            lease = self.leases.acquire(self.job.devices, what=self.job.what, owner=self.job.owner, keeper=self.me, ttl_s=self.job.ttl_s)
            if isinstance(lease, Lease):
                return lease
            holders = [str(holder) for holder in lease]
            if (now := "; ".join(holders)) != told:
                self._say("busy", holders=holders)
                told = now
            if time.monotonic() >= deadline:
                break
            time.sleep(POLL_S)
        return None

    def _start(self, lease: Lease, log: int, pipe: tuple[int, int]) -> subprocess.Popen[bytes]:
        keeper, cores = os.getpid(), set(self.job.cores)
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "linux":
            libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)  # the engine's orphans become this process's children, not some init's that may never bury them

        def before_exec() -> None:
            if sys.platform == "linux":
                libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != keeper:
                    os._exit(1)
                if cores:
                    os.sched_setaffinity(0, cores)

        name, _, value = lease.mark.partition("=")
        # One thread here: what runs between fork and exec takes no lock that another could hold.
        return subprocess.Popen(
            self.job.argv, env=self.job.env | {name: value}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, preexec_fn=before_exec  # noqa: PLW1509
        )

    def _fork_guard(self, lease: Lease, hold: int, held: int) -> int:
        """A child that waits for this process's end of a pipe to close, which the kernel does however the keeper ends."""
        guard = os.fork()
        if guard:
            os.close(hold)
            return guard
        try:
            os.setsid()
            os.close(held)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            with Path(os.devnull).open("r+b") as nothing:
                for descriptor in (0, 1, 2):
                    os.dup2(nothing.fileno(), descriptor)
            os.read(hold, 1)
            while alive(self.me):  # its files are closed a moment before it counts as dead
                time.sleep(0.01)
            reap(Leases(self.leases.path.parent))
        finally:
            os._exit(0)

    def _watch(self, lease: Lease, engine: subprocess.Popen[bytes]) -> None:
        while engine.poll() is None and not self._must_end() and self.leases.wanted(lease.id):
            time.sleep(POLL_S)
        if (code := engine.poll()) is not None:
            self._say("ended", code=code)

    def _must_end(self) -> bool:
        return self.told_to_end or not alive(self.job.owner)

    def _say(self, event: str, **more: Any) -> None:
        # The owner may be gone; that is no reason to leave the engine alone.
        with contextlib.suppress(OSError, ValueError):
            print(json.dumps({"event": event} | more), flush=True)


def _identity_of(engine: subprocess.Popen[bytes]) -> Identity:
    try:
        return identify(engine.pid)
    except ProcessLookupError:  # it ended at once; its number is ours until `poll` buries it
        return Identity(engine.pid, "0", boot_id())


def _bury() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> int:
    keeper = Keeper(Job.from_json(sys.stdin.read()))

    def on_signal(*_: object) -> None:
        keeper.told_to_end = True

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, on_signal)
    return keeper.run()


if __name__ == "__main__":
    sys.exit(main())
