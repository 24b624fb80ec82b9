import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from servewright.tools.serving.custody import Custody
from servewright.tools.serving.keeper import Job
from servewright.tools.serving.launch import free_port
from servewright.tools.serving.processes import identify

ENGINE = '''
import http.server, os, signal, subprocess, sys, time
port, folder, mode = int(sys.argv[1]), sys.argv[2], sys.argv[3]
stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)"
children = [subprocess.Popen([sys.executable, "-c", stubborn]), subprocess.Popen([sys.executable, "-c", stubborn], start_new_session=True)]
if "stubborn" in mode:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(folder + "/pids.tmp", "w") as file:
    file.write(" ".join(str(p) for p in [os.getpid(), *(c.pid for c in children)]))
os.rename(folder + "/pids.tmp", folder + "/pids")
print("engine is up", flush=True)
time.sleep(300)
'''


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Leases of this test alone."""
    monkeypatch.setenv("SERVEWRIGHT_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., Job]:
    """A job whose engine has a child that ignores SIGTERM, and one that also left its session."""

    def make(mode: str = "plain", **changes: object) -> Job:
        script = tmp_path / "engine.py"
        script.write_text(ENGINE)
        port = free_port()
        fields: dict[str, object] = {
            "argv": (sys.executable, str(script), str(port), str(tmp_path), mode), "env": {"PATH": os.environ["PATH"]}, "cores": (), "devices": ("cpu:900",),
            "what": "test", "owner": identify(), "log": str(tmp_path / "engine.log"), "port": port, "wait_s": 5.0, "ttl_s": 60.0, "grace_s": 0.2,
        }  # fmt: skip
        return Job(**{**fields, **changes})  # pyright: ignore[reportArgumentType]

    return make


@pytest.fixture
def custody(job: Callable[..., Job]) -> Iterator[Custody]:
    kept = Custody(job())
    yield kept
    kept.release()


class World:
    """What the tests ask of the processes around them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def pids(self) -> list[int]:
        """Engine and its children, once they run."""
        self.wait_for(lambda: (self.folder / "pids").exists())
        return [int(pid) for pid in (self.folder / "pids").read_text().split()]

    def gone(self, *numbers: int) -> bool:
        return not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in numbers)

    def wait_for(self, done: Callable[[], bool], limit_s: float = 30.0) -> None:
        deadline = time.monotonic() + limit_s
        while not done():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.05)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)
