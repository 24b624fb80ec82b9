"""What the servers of one process share: the project, the campaign, its running jobs."""

from __future__ import annotations

import threading
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..tools.contract.errors import Refused
from .jobs import Jobs

if TYPE_CHECKING:
    from ..tools.experiment.campaign import Campaign
    from ..tools.ledger.project import Project

SHUTDOWN_S = 20.0
"""Longest wait for engines to stop when the client has gone; their keepers go on with it after that."""


class Desk:
    """Opens what is asked for at the first use: the libraries behind a campaign take seconds to import, a client's handshake must not."""

    def __init__(self, folder: Path, thread: str | None = None, endpoint: Path | None = None) -> None:
        self.folder, self.thread, self.endpoint_file = folder, thread, endpoint
        self.jobs = Jobs()
        self._lock = threading.Lock()
        self._campaign: Campaign | None = None

    @cached_property
    def project(self) -> Project:
        from ..tools.ledger.project import Project

        return Project(self.folder)

    def existing_project(self) -> Project:
        """For readers. Raises `BadInput` where no project is."""
        from ..tools.ledger.project import Project

        Project.existing(self.folder)
        return self.project

    @property
    def campaign(self) -> Campaign:
        """The campaign of this server. Raises `Refused` when it was started without one."""
        if self.thread is None:
            raise Refused(
                "this server was started without a campaign, so there is nothing to measure or read here. Start it again with "
                "'servewright mcp serve all --project DIR --thread THREAD' (add '--endpoint FILE.yaml' for a new thread), "
                "or start an investigation with the campaign server's tool start"
            )
        with self._lock:
            if self._campaign is None:
                self._campaign = self._open(self.thread)
            return self._campaign

    def _open(self, thread: str) -> Campaign:
        from ..tools.contract.endpoint import load_endpoint
        from ..tools.experiment.campaign import Campaign

        if self.endpoint_file is None:
            return Campaign.resume(self.project, thread)
        return Campaign.open(self.project, load_endpoint(self.endpoint_file), thread)

    def of_thread(self, thread: str) -> Campaign:
        """Any campaign of the project, to look at and to answer for. Raises `BadInput` for an unknown thread."""
        from ..tools.experiment.campaign import Campaign

        return self.campaign if thread == self.thread else Campaign.resume(self.existing_project(), thread)

    def close(self) -> bool:
        """Stop what runs; True when all of it has ended in time."""
        return self.jobs.shutdown(SHUTDOWN_S)
