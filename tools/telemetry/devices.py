"""GPUs watched during a run."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from .nvml import Device, read_devices


class DeviceWatch:
    """Reads the devices with these UUIDs twice a second in a thread, from `start` to `stop`."""

    def __init__(self, uuids: Iterable[str], *, interval_s: float = 0.5) -> None:
        self.uuids, self.interval_s = frozenset(uuids), interval_s
        self.readings: list[tuple[Device, ...]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="device-watch", daemon=True)

    def start(self) -> DeviceWatch:
        self.look()
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def restart(self) -> None:
        """What was seen before is left out."""
        self.readings = []
        self.look()

    def look(self) -> None:
        self.readings.append(tuple(device for device in read_devices().devices if device.uuid in self.uuids))

    def observables(self) -> dict[str, float]:
        """Observables of source `telemetry`: the least share of memory that was free, on any of the devices. Absent where no device tells."""
        shares = [1 - d.memory_used / d.memory_total for reading in self.readings for d in reading if d.memory_total and d.memory_used is not None]
        return {"memory_headroom_share": min(shares)} if shares else {}

    def throttled(self) -> tuple[str, ...]:
        """Why the devices ran slower than they can, at any time; empty: they didn't."""
        return tuple(sorted({reason for reading in self.readings for device in reading for reason in device.throttled}))

    def _run(self) -> None:
        while not self._stop.wait(self.interval_s):
            self.look()
