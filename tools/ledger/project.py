"""A project's folder: the ledger, the artifacts, and a folder a campaign."""

from __future__ import annotations

import errno
import re
from functools import cached_property
from pathlib import Path

from ..contract.errors import BadInput
from ..contract.run import RunMeasurement
from .ledger import Ledger
from .store import ArtifactStore, StorageFailure

DEFAULT_FOLDER = Path(".servewright")


class Project:
    """`ledger.db`, `artifacts/`, `campaigns/<thread>/`, `heartbeats/`. Made at first use; nothing is written by only looking."""

    def __init__(self, folder: Path = DEFAULT_FOLDER) -> None:
        self.folder = folder.resolve()
        self.measured: dict[str, RunMeasurement] = {}
        """Figures computed so far, by a digest of everything they follow from."""

    @classmethod
    def existing(cls, folder: Path = DEFAULT_FOLDER) -> Project:
        """For readers. Raises `BadInput` where no project is."""
        project = cls(folder)
        if not project.exists:
            raise BadInput("--project", str(folder), "a project's folder (it holds ledger.db; servewright investigate and compare make one)")
        return project

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.folder / "ledger.db")

    @cached_property
    def store(self) -> ArtifactStore:
        return ArtifactStore(self.folder / "artifacts")

    @property
    def exists(self) -> bool:
        return (self.folder / "ledger.db").is_file()

    def campaign_path(self, thread: str) -> Path:
        """Where the campaign's folder is, or will be. Raises `BadInput` for a name that can't be one."""
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", thread):
            raise BadInput("thread", thread, "1 to 63 letters, digits, dots, dashes and underscores, beginning with a letter or digit")
        return self.folder / "campaigns" / thread

    def campaign_folder(self, thread: str) -> Path:
        """The campaign's own folder, made when missing. Raises `BadInput` where the project's folder can't be made or written."""
        folder = self.campaign_path(thread)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise StorageFailure(f"{folder}: no space left on the device; make room and run the same command again") from None
            raise BadInput("--project", str(self.folder), f"a folder that can be made and written ({error.strerror})") from None
        return folder

    def heartbeat(self, run: str) -> Path:
        """The file whose modification time is the run's last sign of life."""
        return self.folder / "heartbeats" / run
