"""Server `telemetry`: what was measured of the baseline, what can be measured, and on what."""

from __future__ import annotations

from typing import Annotated, Literal

from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from ..tools.contract.base import Contract
from ..tools.contract.errors import Refused
from ..tools.contract.observables import LOADS, REGISTRY
from ..tools.experiment.views import BaselineView
from .context import Desk
from .factory import Toolbox

INSTRUCTIONS = "The evidence: figures of the baseline, the observables that hypotheses may name, and the devices."


class ObservableView(Contract):
    name: str
    """As a check names it; LOAD stands for one of the loads."""
    unit: str
    better: Literal["higher", "lower", "neither"]
    meaning: str


class ObservableList(Contract):
    observables: tuple[ObservableView, ...]
    loads: tuple[str, ...]
    """Multiples of the baseline's capacity that LOAD may be."""


class Device(Contract):
    index: int
    name: str
    memory_total_gib: float
    memory_used_gib: float
    utilisation: float | None
    """Share of the last sampling period in which a kernel ran."""


class DeviceList(Contract):
    gpus: tuple[Device, ...]
    cpu_cores: int
    memory_gib: float
    note: str
    """Why the list of GPUs is empty, if it is."""


def read_devices() -> DeviceList:
    """GPUs through NVML, where there is a driver; processor cores and memory of the machine."""
    import psutil
    import pynvml

    gpus: list[Device] = []
    note = ""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        note = f"no GPU can be read here ({error}); sim and CPU endpoints need none"
    else:
        try:
            for index in range(pynvml.nvmlDeviceGetCount()):
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
                try:
                    busy = int(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu) / 100
                except pynvml.NVMLError:
                    busy = None  # not supported on MIG slices
                name = pynvml.nvmlDeviceGetName(handle)
                gpus.append(Device(index=index, name=str(name), memory_total_gib=int(memory.total) / 2**30, memory_used_gib=int(memory.used) / 2**30, utilisation=busy))
        finally:
            pynvml.nvmlShutdown()
    return DeviceList(gpus=tuple(gpus), cpu_cores=psutil.cpu_count() or 1, memory_gib=psutil.virtual_memory().total / 2**30, note=note)


def telemetry_tools(desk: Desk, prefixed: bool) -> list[Tool]:
    box = Toolbox("telemetry", prefixed)

    @box.tool("Evidence of the baseline", reads=True)
    def evidence() -> BaselineView:
        """All figures of the measured baseline: capacity and noise floor, latencies at 0.8, 1.0, 1.2 and 1.5 times its capacity, queueing, KV usage,
        preemptions, prefix hits, effective engine arguments. Read it to find the bottleneck before proposing. Refused until the baseline is measured. Free."""
        baseline = desk.campaign.view().baseline
        if baseline is None:
            raise Refused("the baseline isn't measured yet: start it with the experiment server's baseline_start and wait for its result")
        return baseline

    @box.tool("Observables", reads=True)
    def observables(contains: Annotated[str, Field(max_length=60, description="Only names or meanings that contain this text.")] = "") -> ObservableList:
        """The figures that predictions, falsifiers and activation checks may name, with units and which direction is better. Nothing else can be named, except
        config.<flag>: the effective engine argument of the running server. Free."""
        words = contains.lower()
        found = [o for o in REGISTRY.values() if words in f"{o.name} {o.meaning}".lower()]
        views = tuple(ObservableView(name=o.name + ("@LOAD" if o.at_load else ""), unit=o.unit, better=o.better, meaning=o.meaning) for o in found)
        return ObservableList(observables=views, loads=LOADS)

    @box.tool("Devices", reads=True, outside=True)
    def devices() -> DeviceList:
        """GPUs of this machine with memory and utilisation now, processor cores, memory. Use it to see whether something else occupies the hardware. Free."""
        return read_devices()

    return box.tools
