"""vLLM from a venv of its own, on GPUs or on the CPU."""

from __future__ import annotations

import ast
import re
from functools import cached_property
from pathlib import Path
from typing import Any

from ..contract.base import Scalar
from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint
from ..contract.errors import BadInput, EngineFailure, Refused
from ..knobs.catalogue import Catalogue, catalogue
from ..knobs.vllm import frozen_schema
from ..telemetry.http import get_json
from ..telemetry.nvml import read_devices
from .engine import LaunchSpec
from .environment import base_environment
from .installed import installation, packages
from .leases import Leases
from .paths import cache_folder
from .schema import vllm_schema

_SECTIONS = ("model_config", "cache_config", "parallel_config", "scheduler_config", "load_config", "observability_config", "kernel_config", "attention_config")
_RENAMED = {"policy": "scheduling_policy", "cache_dtype": "kv_cache_dtype", "backend": "attention_backend"}
"""Field of vLLM's config -> flag, where the names differ."""
_NON_DEFAULT = re.compile(r"non-default args: (\{.*\})\s*$")
_CPU_KV_GIB = 1


class VllmEngine:
    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    @cached_property
    def venv(self) -> Path:
        return installation("vllm", self.endpoint.engine.installation)

    @property
    def catalogue(self) -> Catalogue:
        """From the installed engine's own schema; where none is installed, from the version we know."""
        return self._catalogue

    @cached_property
    def _catalogue(self) -> Catalogue:
        try:
            return catalogue("vllm", vllm_schema(self.venv))
        except EngineFailure as failure:
            if failure.kind != "not_installed" or self.endpoint.engine.installation:
                raise
            return catalogue("vllm", frozen_schema())

    def check(self, configuration: Configuration) -> Configuration:
        return self.catalogue.check(configuration)

    def launch_spec(self, configuration: Configuration, *, port: int, cores: tuple[int, ...], launch_seed: int) -> LaunchSpec:
        model = self.endpoint.model
        path = self._model_path()
        own = [path, "--served-model-name", model.name, "--host", "127.0.0.1", "--port", str(port), "--disable-uvicorn-access-log", "--enable-prompt-tokens-details"]
        env = base_environment() | {"VLLM_SERVER_DEV_MODE": "1", "VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_COLOR": "0"}
        if Path(path).is_dir():
            env["HF_HUB_OFFLINE"] = "1"
        devices: tuple[str, ...] = ()
        if self._on_cpu():
            env |= {"VLLM_CPU_KVCACHE_SPACE": str(_CPU_KV_GIB), "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": str(len(cores))}
        else:
            devices = self._gpus()
            env["CUDA_VISIBLE_DEVICES"] = ",".join(device.removeprefix("gpu:") for device in devices)
        argv = (str(self.venv / "bin" / "python"), str(self.venv / "bin" / "vllm"), "serve", *own, *self.catalogue.argv(configuration.args))
        return LaunchSpec(argv=argv, env=env | configuration.env, devices=devices, grace_s=20.0)

    def build(self) -> str:
        found = packages(self.venv, ("vllm", "vllm-cpu", "torch"))
        return " ".join(f"{name} {found[name]}" for name in sorted(found))

    def effective(self, url: str, log: Path) -> dict[str, Scalar]:
        """From `/server_info` (the resolved configuration); what that doesn't hold (the frontend's arguments), from the line of the log where the server echoes its arguments."""
        config: Any = get_json(url, "/server_info?config_format=json", timeout_s=60).get("vllm_config")
        if not isinstance(config, dict):
            raise EngineFailure("unreachable", f"GET {url}/server_info: no vllm_config in the answer", log=str(log))
        return _echoed(log) | flatten(config)

    def _model_path(self) -> str:
        path = self.endpoint.model.path or self.endpoint.model.name
        if self.endpoint.model.path is None and (local := cache_folder() / "models" / path).is_dir():
            return str(local)
        if path.startswith(("/", "~", ".")) and not Path(path).expanduser().is_dir():
            raise BadInput("model.path", path, "an existing folder of weights, or a hub id")
        return str(Path(path).expanduser()) if path.startswith("~") else path

    def _on_cpu(self) -> bool:
        return self.endpoint.hardware.profile == "cpu"

    def _gpus(self) -> tuple[str, ...]:
        seen = read_devices()
        wanted = self.endpoint.hardware.gpus
        if len(seen.devices) < wanted:
            raise EngineFailure("driver_missing", f"{wanted} GPUs are wanted, {len(seen.devices)} seen{': ' + seen.why_missing if seen.why_missing else ''}",
                                "hardware.profile: cpu serves without")  # fmt: skip
        held = {name for lease in Leases().all() for name in lease.devices}
        idle = [device for device in seen.devices if not device.processes and not device.problem]
        free = sorted(idle, key=lambda device: f"gpu:{device.uuid}" in held)  # leased ones last: for them the keeper waits
        if len(free) < wanted:
            busy = ", ".join(f"{device.uuid} (pids {', '.join(map(str, sorted(device.processes)))})" for device in seen.devices if device.processes)
            raise Refused(f"{wanted} free GPUs are wanted, {len(free)} are free; others' processes are on {busy}")
        return tuple(f"gpu:{device.uuid}" for device in free[:wanted])


def flatten(config: dict[str, Any]) -> dict[str, Scalar]:
    """vLLM's nested configuration by flag name: scalars only, `torch.bfloat16` as `bfloat16`."""
    flat: dict[str, Scalar] = {}
    for section in _SECTIONS:
        inner: Any = config.get(section)
        for name, value in inner.items() if isinstance(inner, dict) else ():
            if isinstance(value, (bool, int, float, str)) and not name.startswith("_"):
                flat[_RENAMED.get(name) or name] = value.removeprefix("torch.") if isinstance(value, str) else value
    for name in ("optimization_level", "performance_mode"):
        value = config.get(name)
        if isinstance(value, (bool, int, float, str)):
            flat[name] = value
    return flat


def _echoed(log: Path) -> dict[str, Scalar]:
    """The arguments that the server says it was given."""
    try:
        with log.open(encoding="utf-8", errors="replace") as file:
            match = next((found for line in file if (found := _NON_DEFAULT.search(line))), None)
        told = ast.literal_eval(match[1]) if match else {}
    except (OSError, ValueError, SyntaxError):
        return {}
    return {str(name): value for name, value in told.items() if isinstance(value, (bool, int, float, str))} if isinstance(told, dict) else {}
