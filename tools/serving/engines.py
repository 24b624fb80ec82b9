"""Which engine an endpoint runs."""

from __future__ import annotations

from ..contract.endpoint import Endpoint
from ..contract.errors import BadInput
from .engine import Engine


def engine_for(endpoint: Endpoint) -> Engine:
    """Raises `BadInput` for engines that this version can't launch."""
    match endpoint.engine.kind:
        case "sim":
            from .sim import SimEngine

            return SimEngine(endpoint)
        case "vllm":
            from .vllm import VllmEngine

            return VllmEngine(endpoint)
        case other:
            raise BadInput("engine.kind", other, "sim or vllm: this version can't launch it yet")
