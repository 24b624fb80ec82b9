"""A run in virtual time: the simulator answers the very requests that a replay would send. Predictions, never measurements."""

from __future__ import annotations

import random
import threading
import time
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint
from ..contract.errors import BadInput, EngineFailure
from ..contract.run import ClientReport, Failure, Probe, RunArtifacts, ServerReport
from ..serving.custody import Cancelled
from ..simulator.config import SimConfig
from ..simulator.load import Prompt, SimRequest
from ..simulator.rows import virtual_rows
from ..simulator.virtual import VirtualEngine
from ..traffic.frozen import open_frozen
from ..traffic.metrics import step_attainment
from ..traffic.plan import plan_step
from ..traffic.prompts import freshen, parse
from ..traffic.walk import next_step
from ..traffic.workload import Workload
from .bench import RunRequest, Tell

if TYPE_CHECKING:
    import polars as pl

PERFECT_CLIENT = ClientReport(lateness_p50_s=0, lateness_p99_s=0, lateness_max_s=0, cpu_share=0, connections=0)


class VirtualBench:
    """`noise`: launches differ as the hardware profile says; without it the same configuration always gives the same rows."""

    def __init__(self, endpoint: Endpoint, *, noise: bool = True) -> None:
        self.endpoint, self.noise = endpoint, noise
        self._prompts: dict[tuple[Path, int, int], Prompt] = {}
        self._workloads: dict[Path, Workload] = {}

    def build(self) -> str:
        from ..serving.sim import SimEngine

        return f"virtual {SimEngine(self.endpoint).build()}"

    def run(self, request: RunRequest, tell: Tell, cancel: threading.Event) -> RunArtifacts:
        started = time.monotonic()
        hardware = self.endpoint.hardware
        try:
            config = SimConfig.from_args(_as_sim(request.configuration), self.endpoint.model.name, hardware.profile, hardware.gpus, request.launch_seed)
        except (EngineFailure, BadInput) as problem:
            kind = problem.kind if isinstance(problem, EngineFailure) else "bad_flag"
            line = problem.line if isinstance(problem, EngineFailure) else str(problem)
            failed = Failure(kind=kind, line=line, stage="start")
            return RunArtifacts(rows=None, log=None, server=None, client=None, failure=failed, wall_s=time.monotonic() - started, replay_wall_s=0)
        rows, counters = self._walk(config, request, tell, cancel)
        request.folder.mkdir(parents=True, exist_ok=True)
        path = request.folder / "rows.parquet"
        rows.write_parquet(path)
        report = ServerReport(build=self.build(), effective=config.effective(), counters=counters, launch_s=0)
        taken = self._probe(config, request.launch_seed) if request.probe else Probe(why_missing="not asked for in this run")
        wall = time.monotonic() - started
        return RunArtifacts(rows=str(path), log=None, server=report, client=PERFECT_CLIENT, probe=taken, wall_s=wall, replay_wall_s=wall)

    def _walk(self, config: SimConfig, request: RunRequest, tell: Tell, cancel: threading.Event) -> tuple[pl.DataFrame, dict[str, float]]:
        import polars as pl

        workload = self._workload(request.workload)
        engine = VirtualEngine(config, self.endpoint.hardware.noise_cv if self.noise else 0.0)
        frames: list[pl.DataFrame] = []
        kept: dict[int, bool] = {}
        counters: dict[str, float] = {}
        while (index := following(request, kept)) is not None:
            if cancel.is_set():
                raise Cancelled
            if request.policy.cache_policy != "steady":
                engine.reset_prefix_cache()
            frame, counters = self._step(engine, workload, request, index)
            frames.append(frame)
            attainment = step_attainment(frame, self.endpoint.sla)
            kept[index] = attainment >= self.endpoint.sla.attainment
            tell(f"{request.ladder[index]:.3g} requests/s: {attainment:.1%} inside the SLA", len(frames), 0)
        return pl.concat(frames), counters

    def _step(self, engine: VirtualEngine, workload: Workload, request: RunRequest, index: int) -> tuple[pl.DataFrame, dict[str, float]]:
        policy, rate = request.policy, request.ladder[index]
        plan = plan_step(workload, request.window, rate, policy.warmup_s, policy.window_s, policy.cache_policy)
        if len(plan.warm):
            warm = [SimRequest(0.0, self._prompt(request.workload, workload, i, 0), int(workload.expected_output_tokens[i])) for i in plan.warm]
            engine.replay(warm, float("inf"))
        numbers: Sequence[int] = plan.request.tolist()
        arrivals = [
            SimRequest(at, self._prompt(request.workload, workload, number, turn), int(workload.expected_output_tokens[number]))
            for at, number, turn in zip(plan.scheduled_s.tolist(), numbers, plan.turn.tolist(), strict=True)
        ]
        return virtual_rows(engine, numbers, arrivals, rate_index=index, offered_rps=rate, warmup_s=policy.warmup_s, drain_s=policy.drain_s)

    def _workload(self, path: Path) -> Workload:
        if path not in self._workloads:
            self._workloads[path] = open_frozen(path)
        return self._workloads[path]

    def _prompt(self, path: Path, workload: Workload, number: int, turn: int) -> Prompt:
        key = (path, number, turn)
        if key not in self._prompts:
            length, tokens = int(workload.expected_prompt_tokens[number]), workload.tokens
            if tokens is None:
                raise BadInput("workload.trace", self.endpoint.workload.trace, "a trace of lengths and block hashes, for the simulator in virtual time")
            body = workload.bodies[number] if turn == 0 else freshen(workload.bodies[number], length, tokens, turn)
            self._prompts[key] = Prompt(array("I", parse(body, length, tokens).tolist()))
        return self._prompts[key]

    def _probe(self, config: SimConfig, seed: int) -> Probe:
        from ..simulator.logprobs import prompt_logprobs
        from ..traffic.parity import probe_ids

        noise = random.Random(seed)
        return Probe(logprobs=tuple(tuple(prompt_logprobs(array("I", ids).tobytes(), config, noise)) for ids in probe_ids()))


def following(request: RunRequest, kept: dict[int, bool]) -> int | None:
    """The next ladder step of the run: by the walk, or one after the other where the user fixed the rates."""
    if request.policy.climb:
        return next_step(request.ladder, request.reference, kept)
    return len(kept) if len(kept) < len(request.ladder) else None


def _as_sim(configuration: Configuration) -> Configuration:
    """A real engine's configuration as the simulator takes it: flags that it models; the others have no effect on the prediction."""
    from ..simulator.config import FLAGS

    if configuration.kind == "sim":
        return configuration
    return Configuration(kind="sim", args={name: value for name, value in configuration.args.items() if name in FLAGS})

