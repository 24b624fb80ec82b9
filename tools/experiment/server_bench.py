"""A run on a real server: launch, parity probe, replay of the ladder while counters are scraped, stop."""

from __future__ import annotations

import threading
import time
from typing import Literal

from ..contract.endpoint import Endpoint
from ..contract.errors import EngineFailure, Refused
from ..contract.run import Failure, Probe, RunArtifacts
from ..serving.custody import Cancelled
from ..serving.engines import engine_for
from ..serving.launch import serve
from ..serving.server import Server
from ..traffic.parity import probe
from ..traffic.replay import ReplayJob, ReplayProgress, ReplayWorker, run_replay
from .bench import RunRequest, Tell
from .policy import at_clock

PROBE_S = 60.0


class ServerBench:
    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    def build(self) -> str:
        return engine_for(self.endpoint).build()

    def run(self, request: RunRequest, tell: Tell, cancel: threading.Event) -> RunArtifacts:
        request.folder.mkdir(parents=True, exist_ok=True)
        log = request.folder / "engine.log"
        started = time.monotonic()
        stage: Literal["start", "replay"] = "start"
        tell("launching the engine", 0, 0)
        endpoint, seed = at_clock(self.endpoint, request.policy.clock), request.launch_seed

        def waiting(said: str) -> None:
            tell(said, 0, 0)

        try:
            with ReplayWorker() as worker, serve(endpoint, request.configuration, log=log, launch_seed=seed, cancel=cancel, progress=waiting) as server:
                stage = "replay"
                measured = self._measure(server, worker, request, tell, cancel)
        except EngineFailure as failure:
            if cancel.is_set():
                raise Cancelled("stopped while the engine was starting") from None
            failed = Failure(kind=failure.kind, line=failure.line, stage=stage)
            kept = str(log) if log.exists() else None
            return RunArtifacts(rows=None, log=kept, server=None, client=None, failure=failed, wall_s=time.monotonic() - started, replay_wall_s=0)
        return measured.model_copy(update={"log": str(log), "wall_s": time.monotonic() - started})

    def _measure(self, server: Server, worker: ReplayWorker, request: RunRequest, tell: Tell, cancel: threading.Event) -> RunArtifacts:
        taken = Probe(why_missing="not asked for in this run")
        if request.probe:
            tell("taking the parity probe", 0, 0)
            taken = probe(server.url, self.endpoint.model.name, timeout_s=PROBE_S)
        server.restart_counters()

        done: list[int] = []
        total = 0 if request.policy.climb else len(request.ladder)  # how many steps a walk takes is seen at its end

        def heard(progress: ReplayProgress) -> None:
            if progress.step_done:
                done.append(progress.step)
            inside = f", {progress.attainment:.1%} inside the SLA" if progress.attainment is not None else ""
            tell(f"{progress.offered_rps:.3g} requests/s: {progress.ended}/{progress.planned} answered{inside}", len(done), total)

        result = run_replay(self._job(server, request), progress=heard, cancel=cancel, worker=worker)
        if cancel.is_set():
            raise Cancelled("stopped while it was measured")
        rows, client = (str(result.rows) if result.rows else None), result.client
        if server.keeper_lost():
            raise Refused("the engine's keeper was killed, and the engine with it: the run says nothing and is aborted; resume, and it is made again")
        failure = server.failure()
        report = None if failure else server.report()
        return RunArtifacts(rows=rows, log=None, server=report, client=client, probe=taken, failure=failure, wall_s=0, replay_wall_s=result.wall_s)

    def _job(self, server: Server, request: RunRequest) -> ReplayJob:
        policy = request.policy
        return ReplayJob(
            url=server.url,
            model=self.endpoint.model.name,
            workload=str(request.workload),
            window=request.window,
            rates=request.ladder,
            reference_capacity=request.reference,
            climb=policy.climb,
            sla=self.endpoint.sla,
            window_s=policy.window_s,
            warmup_s=policy.warmup_s,
            drain_s=policy.drain_s,
            clock=policy.clock,
            cache_policy=policy.cache_policy,
            reset_path=server.reset_path,
            cores=server.client_cores,
            rows=str(request.folder / "rows.parquet"),
        )
