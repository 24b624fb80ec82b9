"""NVIDIA devices, read through NVML. Without a driver there are none, and why is said."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from pydantic import Field

from ..contract.base import Contract

T = TypeVar("T")

_THROTTLE = {
    0x4: "power cap (software)",
    0x8: "hardware slowdown",
    0x20: "temperature (software)",
    0x40: "temperature (hardware)",
    0x80: "power brake (hardware)",
}
"""Bits of nvmlDeviceGetCurrentClocksEventReasons (nvml.h) that make a measurement unfit; idle, application clocks, sync boost and display are none."""


class Device(Contract):
    """What a field can't tell (not supported, no permission) is None."""

    index: int
    uuid: str
    name: str
    memory_total: int | None = None
    """Bytes."""
    memory_used: int | None = None
    utilisation: int | None = None
    """Percent of the last sample period in which a kernel ran."""
    throttled: tuple[str, ...] = ()
    processes: dict[int, int] = Field(default_factory=dict)
    """Compute processes: pid -> bytes (0: not told)."""
    problem: str = ""
    """Why the device as a whole could not be read, such as a lost GPU."""


class Devices(Contract):
    devices: tuple[Device, ...] = ()
    why_missing: str = ""
    """Empty where the driver answers."""


def read_devices() -> Devices:
    """All devices now. Never raises for want of a driver."""
    with _nvml() as nvml:
        if isinstance(nvml, str):
            return Devices(why_missing=nvml)
        try:
            count = nvml.nvmlDeviceGetCount()
        except nvml.NVMLError as error:
            return Devices(why_missing=str(error))
        return Devices(devices=tuple(_device(nvml, index) for index in range(count)))


def _device(nvml: Any, index: int) -> Device:
    def ask(function: Callable[[], T]) -> T | None:
        try:
            return function()
        except nvml.NVMLError:
            return None

    try:
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        uuid, name = _text(nvml.nvmlDeviceGetUUID(handle)), _text(nvml.nvmlDeviceGetName(handle))
    except nvml.NVMLError as error:
        return Device(index=index, uuid=f"unknown-{index}", name="unknown", problem=str(error))
    memory, busy = ask(lambda: nvml.nvmlDeviceGetMemoryInfo(handle)), ask(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    reasons = ask(lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)) or 0
    processes = ask(lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle)) or []
    return Device(
        index=index,
        uuid=uuid,
        name=name,
        memory_total=None if memory is None else int(memory.total),
        memory_used=None if memory is None else int(memory.used),
        utilisation=None if busy is None else int(busy.gpu),
        throttled=tuple(text for bit, text in _THROTTLE.items() if reasons & bit),
        processes={int(process.pid): int(process.usedGpuMemory or 0) for process in processes},
    )


@contextlib.contextmanager
def _nvml() -> Iterator[Any]:
    """The binding, initialised; or a text that says why there is none."""
    import pynvml

    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        yield f"no NVIDIA driver: {error}"
        return
    try:
        yield pynvml
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _text(value: bytes | str) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
