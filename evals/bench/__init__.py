"""Our own figures: each module here with NAME, SUMMARY and `run(options) -> dict` is a benchmark. Every figure in the documents comes from one."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from ...tools.contract.errors import BadInput


@dataclass(frozen=True)
class Benchmark:
    """`run` takes the options after the name and returns figures by name; a key `table` (list of rows) is printed as one."""

    name: str
    summary: str
    run: Callable[[list[str]], dict[str, Any]]


def benchmarks() -> list[Benchmark]:
    """All of them, by name. Imports the modules, which import what they measure only when they run."""
    modules = [import_module(f".{found.name}", __name__) for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_")]
    found = [Benchmark(module.NAME, module.SUMMARY, module.run) for module in modules if hasattr(module, "NAME")]
    return sorted(found, key=lambda benchmark: benchmark.name)


def benchmark(name: str) -> Benchmark:
    """Raises `BadInput` naming what there is."""
    for one in (known := benchmarks()):
        if one.name == name:
            return one
    raise BadInput("benchmark", name, f"one of {', '.join(one.name for one in known) or '(none is here)'}")
