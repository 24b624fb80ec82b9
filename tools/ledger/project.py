"""A project's folder: the ledger, the artifacts, and a folder a campaign."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from ..contract.errors import BadInput
from ..contract.run import RunMeasurement
from .ledger import Ledger
from .store import ArtifactStore

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
        if not (project.folder / "ledger.db").is_file():
            raise BadInput("--project", str(folder), "a project's folder (it holds ledger.db; servewright investigate and compare make one)")
        return project

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.folder / "ledger.db")

    @cached_property
    def store(self) -> ArtifactStore:
        return ArtifactStore(self.folder / "artifacts")

    def campaign_folder(self, thread: str) -> Path:
        """The campaign's own folder, made when missing."""
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", thread):
            raise BadInput("thread", thread, "1 to 63 letters, digits, dots, dashes and underscores, beginning with a letter or digit")
        folder = self.folder / "campaigns" / thread
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def heartbeat(self, run: str) -> Path:
        """The file whose modification time is the run's last sign of life."""
        return self.folder / "heartbeats" / run
