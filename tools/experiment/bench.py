"""Where a run happens: a real server over HTTP, or the simulator in virtual time. Both hand back the same raw artifacts."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint
from ..contract.run import RunArtifacts
from ..contract.series import MeasurementPolicy

Tell = Callable[[str, float, float], None]
"""Takes a message, the steps done and the steps expected (0: not known)."""


@dataclass(frozen=True)
class RunRequest:
    """One launch and one walk over the ladder."""

    configuration: Configuration
    workload: Path
    """The frozen workload file."""
    window: Literal["explore", "held_out"]
    ladder: tuple[float, ...]
    reference: float
    policy: MeasurementPolicy
    launch_seed: int
    folder: Path
    """Where raw rows and logs are written; the driver moves them into the artifact store."""
    probe: bool
    """Also take the parity probe."""


class Bench(Protocol):
    def build(self) -> str:
        """Version and build of the engine, without starting it."""
        ...

    def run(self, request: RunRequest, tell: Tell, cancel: threading.Event) -> RunArtifacts:
        """Launch, replay, stop. An engine that fails is an artifact with `failure`, not an exception. Raises `Cancelled`."""
        ...


def bench_for(endpoint: Endpoint) -> Bench:
    """The bench that `measurement.mode` names."""
    if endpoint.measurement.mode == "virtual":
        from .virtual_bench import VirtualBench

        return VirtualBench(endpoint)
    from .server_bench import ServerBench

    return ServerBench(endpoint)
