"""A running engine, as its owner sees it."""

from __future__ import annotations

from pathlib import Path

from ..contract.base import Scalar
from ..contract.run import Failure, ServerReport
from ..telemetry.counters import Scraper
from ..telemetry.devices import DeviceWatch
from .custody import Custody
from .engine import Engine
from .failures import TAIL_BYTES
from .processes import Identity, alive


class Server:
    """Healthy when it is handed out. `url` has no slash at its end; `reset_path` takes a POST that empties the prefix cache."""

    def __init__(
        self, *, engine: Engine, custody: Custody, process: Identity, url: str, model: str, devices: tuple[str, ...], reset_path: str | None, build: str, launch_s: float, log: Path, client_cores: tuple[int, ...], note: str
    ) -> None:
        self.url, self.model, self.reset_path, self.build, self.launch_s, self.log = url, model, reset_path, build, launch_s, log
        self.lease = custody.lease_id
        self.pid = process.pid
        self.client_cores = client_cores
        """Cores for whoever measures it."""
        self.note = note
        """What the user should know about this launch, such as shared cores; empty when nothing."""
        self._engine, self._custody, self._process = engine, custody, process
        self._scraper = Scraper(url).start()
        gpus = tuple(device.removeprefix("gpu:") for device in devices if device.startswith("gpu:"))
        self._watch = DeviceWatch(gpus).start() if gpus else None

    def effective(self) -> dict[str, Scalar]:
        """Engine arguments as the server reports them, by flag name. Raises `EngineFailure`."""
        return self._engine.effective(self.url, self.log)

    def restart_counters(self) -> None:
        """Counters count from here on."""
        self._scraper.restart()
        if self._watch:
            self._watch.restart()

    def counters(self) -> dict[str, float]:
        """Observables of sources `counters` and `telemetry` since the launch, or since `restart_counters`."""
        if self.alive():
            self._scraper.scrape()
        return self._scraper.observables() | (self._watch.observables() if self._watch else {})

    def report(self) -> ServerReport:
        """All that the engine says of itself so far. Raises `EngineFailure` where it no longer answers."""
        counters = self.counters()
        lag, lags = self._scraper.clock_lag_s(), self._scraper.clock_lags_s()
        return ServerReport(build=self.build, effective=self.effective(), counters=counters, launch_s=self.launch_s, clock_lag_p99_s=lag, clock_lags_p99_s=lags)

    def alive(self) -> bool:
        return alive(self._process)

    def keeper_lost(self) -> bool:
        """The keeper ended without saying that the engine did: what happened to the engine then is no fault of its own."""
        return self._custody.lost()

    def failure(self) -> Failure | None:
        """Why it died while serving; None while it lives."""
        if self.alive():
            return None
        self._custody.ended()
        found = self._custody.diagnosis(log_tail(self.log))
        return Failure(kind="died" if found.kind == "unknown" else found.kind, line=found.line, stage="replay")

    def close(self) -> None:
        """Stop listening to it; the engine itself is the keeper's."""
        self._scraper.stop()
        if self._watch:
            self._watch.stop()


def log_tail(log: Path) -> str:
    """The end of a log, up to `TAIL_BYTES`."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
