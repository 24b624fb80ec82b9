"""Long installations in steps: each is done once, all can be run again after any interruption."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ..contract.errors import EngineFailure, Refused
from .failures import redact

Say = Callable[[str], None]


class Steps:
    """`folder` holds one empty file a finished step; `log` gets all output; `say` one line of progress now and then.

    `lock`: descriptor of the lock that `alone` gave. Programs inherit it: where only this process is killed, they hold it until they end.
    """

    def __init__(self, folder: Path, log: Path, say: Say, lock: int | None = None) -> None:
        self.folder, self.log, self.say, self.lock = folder, log, say, lock

    def once(self, name: str, what: str, act: Callable[[], None]) -> None:
        """Do it unless it was done."""
        mark = self.folder / name
        if mark.exists():
            return
        self.say(what)
        begun = time.monotonic()
        act()
        self.folder.mkdir(parents=True, exist_ok=True)
        mark.touch()
        self.say(f"  done in {time.monotonic() - begun:.0f} s")

    def run(self, argv: Sequence[str | Path], *, what: str, env: dict[str, str] | None = None) -> None:
        """Run a program; its output goes to the log, what it fetches is told. Raises `EngineFailure` with its last words."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        last, told = "", 0.0
        with self.log.open("a", encoding="utf-8") as log:
            with subprocess.Popen([str(part) for part in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", env=os.environ | (env or {}), pass_fds=() if self.lock is None else (self.lock,)) as process:  # fmt: skip
                assert process.stdout is not None
                for line in process.stdout:
                    log.write(line)
                    last = line.strip() or last
                    if line.lstrip().startswith(("Collecting ", "Downloading ", "Installing ")) and time.monotonic() - told > 3:
                        told = time.monotonic()
                        self.say(f"  {redact(line.strip())[:100]}")
            if process.returncode:
                raise EngineFailure("not_installed", f"{what}: {redact(last)[:300]}", "run the same command again: it goes on where it stopped", str(self.log))


@contextmanager
def alone(lock: Path) -> Iterator[int]:
    """One installation at a time; gives the lock's descriptor. Raises `Refused`."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refused(f"another installation is running (it holds {lock})") from None
        yield file.fileno()


def need_room(folder: Path, gib: float) -> None:
    """Raises `EngineFailure` where the disk has less than `gib` GiB left."""
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free / 2**30
    if free < gib:
        raise EngineFailure("not_installed", f"{gib:g} GiB are needed at {folder}, {free:.1f} GiB are free", "make room, or set SERVEWRIGHT_CACHE to another disk")


def reachable(url: str, timeout_s: float = 5.0) -> bool:
    """Whether a web server answers there at all."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=timeout_s):  # noqa: S310 - an https constant of ours, or the user's own
            return True
    except urllib.error.HTTPError:
        return True
    except (OSError, ValueError):
        return False
