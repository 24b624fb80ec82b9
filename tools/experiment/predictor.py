"""What the simulator says of a configuration, in virtual time. Predictions: they choose values and rank ideas, and are never evidence."""

from __future__ import annotations

import tempfile
import threading
from pathlib import Path

from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint
from ..contract.errors import BadInput, Refused
from ..contract.run import RunMeasurement, ServerReport
from ..traffic.walk import ladder_around
from .baseline import series_for
from .bench import RunRequest
from .policy import policy_of
from .virtual_bench import PERFECT_CLIENT, VirtualBench

CAVEAT = "a prediction of the simulator in virtual time for this hardware profile; never evidence"
TRIES = 4


class Predictor:
    """Noise-free figures on the trace's first part; each configuration is simulated once."""

    def __init__(self, endpoint: Endpoint, workload: Path, workload_digest: str) -> None:
        self._endpoint, self._workload, self._digest = endpoint, workload, workload_digest
        self._bench = VirtualBench(endpoint, noise=False)
        self._known: dict[tuple[str, float], RunMeasurement] = {}

    def predict(self, configuration: Configuration, reference: float) -> RunMeasurement:
        """Figures around `reference` (requests/s of all devices). Raises `BadInput` for an unknown model or hardware profile, `Refused` when it wouldn't start."""
        key = (configuration.digest(), reference)
        if key not in self._known:
            self._known[key] = self._simulate(configuration, reference)
        return self._known[key]

    def guess(self, configuration: Configuration, start: float) -> float:
        """The capacity (requests/s of all devices) that the simulator expects, searched from `start`; `start` itself where it can't tell."""
        reference = start
        try:
            for _ in range(TRIES):
                capacity = self.predict(configuration, reference).capacity
                reference = capacity.rps_per_gpu * self._endpoint.hardware.gpus
                if capacity.censored is None:
                    return reference
                reference *= 4.0 if capacity.censored == "above" else 0.25
        except (BadInput, Refused):
            return start
        return reference

    def _simulate(self, configuration: Configuration, reference: float) -> RunMeasurement:
        import polars as pl

        from ..traffic.metrics import measure

        policy = policy_of(self._endpoint, short=True, mode="virtual").model_copy(update={"climb": True})
        ladder = ladder_around(reference, self._endpoint.measurement.ladder_step)
        with tempfile.TemporaryDirectory(prefix="servewright-virtual-") as folder:
            request = RunRequest(configuration, self._workload, "explore", ladder, reference, policy, 0, Path(folder), probe=False)
            artifacts = self._bench.run(request, lambda *_: None, threading.Event())
            if artifacts.failure is not None or artifacts.rows is None:
                raise Refused(f"the simulator could not run it: {artifacts.failure.line if artifacts.failure else 'no rows'}")
            rows = pl.read_parquet(artifacts.rows)
        series = series_for(self._endpoint, workload=self._digest, build="virtual", window="explore", ladder=ladder, reference=reference, short=True, mode="virtual")
        server: ServerReport | None = artifacts.server
        assert server is not None
        return measure(rows, run="virtual", series=series.model_copy(update={"policy": policy}), server=server, client=PERFECT_CLIENT)
