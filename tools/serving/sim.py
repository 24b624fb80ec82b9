"""The embedded engine: the simulator behind HTTP."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from ..contract.base import Scalar
from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint
from ..contract.errors import EngineFailure
from ..knobs.catalogue import catalogue
from ..simulator.profiles import hardware, model
from ..telemetry.http import get_json
from .engine import LaunchSpec
from .environment import base_environment

PACKAGE = "servewright.tools.simulator"


class SimEngine:
    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.catalogue = catalogue("sim")

    def check(self, configuration: Configuration) -> Configuration:
        hardware(self.endpoint.hardware.profile)
        model(self.endpoint.model.name)
        return self.catalogue.check(configuration)

    def launch_spec(self, configuration: Configuration, *, port: int, cores: tuple[int, ...], launch_seed: int) -> LaunchSpec:
        endpoint = self.endpoint
        own = ["--model", endpoint.model.name, "--hardware", endpoint.hardware.profile, "--gpus", str(endpoint.hardware.gpus), "--host", "127.0.0.1",
               "--port", str(port), "--clock", f"{endpoint.measurement.clock:g}", "--launch-seed", str(launch_seed),
               *(["--noise-cv", f"{endpoint.hardware.noise_cv:g}"] if endpoint.hardware.noise_cv is not None else [])]  # fmt: skip
        argv = (sys.executable, "-m", f"{PACKAGE}.server", *own, *self.catalogue.argv(configuration.args))
        return LaunchSpec(argv=argv, env=base_environment() | configuration.env, devices=(), grace_s=5.0)

    def build(self) -> str:
        return f"servewright-sim {_sources()}"

    def effective(self, url: str, log: Path) -> dict[str, Scalar]:
        config: Any = get_json(url, "/server_info?config_format=json").get("vllm_config")
        if not isinstance(config, dict):
            raise EngineFailure("unreachable", f"GET {url}/server_info: no vllm_config in the answer", log=str(log))
        return {name: value for name, value in config.items() if isinstance(value, (bool, int, float, str))}


@cache
def _sources() -> str:
    """Digest of the simulator's sources and profiles: another simulator is another engine."""
    total = hashlib.sha256()
    for item in sorted(resources.files(PACKAGE).iterdir(), key=lambda item: item.name):
        if item.name.endswith((".py", ".json")):
            total.update(item.name.encode() + b"\0" + item.read_bytes() + b"\0")
    return total.hexdigest()[:12]
