"""What makes runs comparable, as digests: the devices and the model's files."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

from ..contract.base import digest
from ..contract.endpoint import Endpoint

HEADER_BYTES = 1 << 20


def hardware_identity(endpoint: Endpoint, cores: object) -> str:
    """Digest of the machine and the devices that serve. In virtual mode the simulated hardware alone counts."""
    simulated = {"profile": endpoint.hardware.profile, "gpus": endpoint.hardware.gpus, "noise_cv": endpoint.hardware.noise_cv}
    if endpoint.measurement.mode == "virtual":
        return digest(simulated)[:16]
    return digest({**simulated, "node": platform.node(), "machine": platform.machine(), "cores": str(cores)})[:16]


def model_identity(endpoint: Endpoint) -> str:
    """The model's name with a digest of its folder: names, sizes, and the first MiB of every file (weights differ in their headers or their size)."""
    path = Path(endpoint.model.path) if endpoint.model.path else None
    if path is None or not path.is_dir():
        return f"{endpoint.model.name}:{endpoint.model.path or 'profile'}"
    hashed = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        hashed.update(f"{file.relative_to(path)} {file.stat().st_size}\n".encode())
        with file.open("rb") as handle:
            hashed.update(handle.read(HEADER_BYTES))
    return f"{endpoint.model.name}:{hashed.hexdigest()[:16]}"
