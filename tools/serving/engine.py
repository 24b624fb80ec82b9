"""What an engine must offer to be launched and measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ..contract.base import Scalar
from ..contract.configuration import Configuration
from ..knobs.catalogue import Catalogue


@dataclass(frozen=True)
class LaunchSpec:
    """How to start it. `argv` is an argument list, never a shell string; `env` is the whole environment."""

    argv: tuple[str, ...]
    env: dict[str, str] = field(repr=False)
    devices: tuple[str, ...]
    """What it needs for itself: `gpu:<UUID>`; cores are added by `launch`."""
    grace_s: float
    """From SIGTERM to SIGKILL."""
    ready_path: str = "/health"
    reset_path: str | None = "/reset_prefix_cache"
    """POST here empties the prefix cache."""


class Engine(Protocol):
    """One kind of engine, for one endpoint."""

    @property
    def catalogue(self) -> Catalogue:
        """Its arguments, as the installed version takes them."""
        ...

    def check(self, configuration: Configuration) -> Configuration:
        """The configuration in the engine's own types. Raises `BadInput`."""
        ...

    def launch_spec(self, configuration: Configuration, *, port: int, cores: tuple[int, ...], launch_seed: int) -> LaunchSpec:
        """For a checked configuration. Raises `EngineFailure("not_installed", ...)`."""
        ...

    def build(self) -> str:
        """Version and build, so that equal strings mean the same engine."""
        ...

    def effective(self, url: str, log: Path) -> dict[str, Scalar]:
        """Engine arguments as the running server reports them, by flag name with underscores, and `num_gpu_blocks`. Raises `EngineFailure`."""
        ...
