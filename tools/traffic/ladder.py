"""The whole run: step after step of the ladder, the cache put right between them, rows written after each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import ceil
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from ..contract.errors import BadInput, EngineFailure
from ..contract.run import ClientReport
from .answer import Answer
from .fitness import read_up_to
from .job import ReplayJob, ReplayProgress, ReplayResult
from .metrics import step_attainment
from .plan import Schedule, plan_step
from .pool import Pool
from .rows import rows_of, write_rows
from .server import reset_cache, settle
from .step import Step
from .walk import next_step
from .warming import warm_cache
from .wires import Wires
from .workload import Workload

if TYPE_CHECKING:
    import polars as pl

PROGRESS_S = 0.5
SETTLE_S = 15.0
"""Longest wall time that the server is given to become idle before the next step."""
TURNS_A_STEP = 1000
REST_S = 1.0
"""Server seconds between the abort of what was left open and the emptying of the cache."""


class Ladder:
    """Runs one job. `climb` returns when all is done, the server is gone, or `cancel` was called."""

    def __init__(self, job: ReplayJob, workload: Workload, report: Callable[[ReplayProgress], None]) -> None:
        self._job, self._workload, self._report = job, workload, report
        self._pool = Pool(job.url)
        self._frames: list[pl.DataFrame] = []
        self._attainments: dict[int, float] = {}
        self._cpu: dict[int, float] = {}
        self._notes: list[str] = []
        self._step: Step | None = None
        self._cancelled = False
        self._reported = 0.0
        self._resets = job.reset_path is not None and job.cache_policy != "steady"
        if job.cache_policy != "steady" and job.reset_path is None and workload.tokens is None:
            raise BadInput("reset_path", None, f"a path that empties the cache: policy {job.cache_policy} needs one where prompts are logged text")

    def cancel(self) -> None:
        self._cancelled = True
        if self._step is not None:
            self._step.cancel()

    async def climb(self, began: float) -> ReplayResult:
        """Run the ladder. Raises `EngineFailure` when nothing answers before the first request."""
        stopped, error = "end", None
        await self._pool.resolve()
        try:
            while (index := self._following()) is not None:
                rate = self._job.rates[index]
                await self._prepare(index)
                if self._cancelled:
                    stopped = "cancelled"
                    break
                step = await self._run(index, rate)
                if self._cancelled or step.gone:
                    stopped = "cancelled" if self._cancelled else "server_gone"
                    error = "the server is gone: connections are refused" if step.gone else None
                    break
        except EngineFailure as failure:
            stopped, error = ("server_gone" if failure.kind == "unreachable" and self._frames else "error"), str(failure)
        finally:
            await self._pool.close()
        return ReplayResult(
            rows=self._job.rows if self._frames else None,
            client=self._client() if self._frames else None,
            wall_s=perf_counter() - began,
            error=error,
            stopped_at=stopped,
            notes=tuple(self._notes),
        )

    async def _prepare(self, index: int) -> None:
        """Before a step: an idle server, and the cache as the policy wants it. The loop has nothing else to do meanwhile."""
        job = self._job
        left = self._step.unfinished if self._step is not None else 0
        if (self._frames or self._resets) and not settle(job.url, SETTLE_S, left_open=left > 0) and left:
            self._notes.append(f"the step at {job.rates[index]:g} requests/s may have begun before the server was idle again: the one before left {left} requests open")
        if left:
            await asyncio.sleep(REST_S / job.clock)  # an aborted request's blocks are freed with the step that was under way
        if self._resets and job.reset_path is not None:
            reset_cache(job.url, job.reset_path)
        if job.cache_policy == "warmed":
            warm = plan_step(self._workload, job.window, job.rates[index], job.warmup_s, job.window_s, "warmed").warm
            await warm_cache(self._pool, self._wires(), self._workload, warm, self._turn(index), job.drain_s / job.clock)

    async def _run(self, index: int, rate: float) -> Step:
        job = self._job
        schedule = plan_step(self._workload, job.window, rate, job.warmup_s, job.window_s, job.cache_policy)
        if schedule.repeats > 1:
            fresh = "with fresh prompts" if self._workload.tokens is not None else "with the same prompts"
            self._notes.append(f"the step at {rate:g} requests/s needed {schedule.repeats} passes over the window, {fresh}")
        wires = self._wires()
        step = Step(
            self._pool,
            (schedule.scheduled_s / job.clock).tolist(),
            wires.of(schedule.request, schedule.turn + self._turn(index)),
            drain_s=job.drain_s / job.clock,
            timeout_s=job.request_timeout_s / job.clock if job.request_timeout_s else None,
            keeps_sla=self._keeps_sla,
            tick=lambda step: self._tick(index, rate, step),
        )
        self._step = step
        await self._pool.warm(min(ceil(rate * job.clock * 0.05) + 4, 512))
        answers = await step.run()
        self._cpu[index] = step.cpu_share
        self._keep(index, rate, schedule, answers, step.start)
        self._tick(index, rate, step, done=True)
        return step

    def _keep(self, index: int, rate: float, schedule: Schedule, answers: list[Answer], start: float) -> None:
        job = self._job
        frame = rows_of(answers, self._workload, schedule, start=start, clock=job.clock, rate_index=index, rate=rate, warmup_s=job.warmup_s)
        self._frames.append(frame)
        write_rows(self._frames, Path(job.rows))
        self._attainments[index] = step_attainment(frame, job.sla)

    def _wires(self) -> Wires:
        return Wires(self._workload, self._job.model, self._pool.netloc, self._pool.base)

    def _turn(self, index: int) -> int:
        """Steps that share a cache which nobody empties get prompts of their own: else each would find the answers' prompts of the one before."""
        return 0 if self._resets or self._workload.tokens is None else index * TURNS_A_STEP

    def _following(self) -> int | None:
        """The next step: by the walk, or in order where every rate is run."""
        job, done = self._job, self._attainments
        if not job.climb or job.reference_capacity is None:
            return len(done) if len(done) < len(job.rates) else None
        return next_step(job.rates, job.reference_capacity, {index: share >= self._required for index, share in done.items()})

    @property
    def _required(self) -> float:
        return self._job.sla.attainment if self._job.sla is not None else 0.95

    def _keeps_sla(self, answer: Answer) -> bool:
        """For the progress only; figures come from the rows."""
        sla, clock = self._job.sla, self._job.clock
        first, last = answer.first or answer.end, answer.last or answer.end
        if sla is None or first is None or last is None:
            return True
        tokens = answer.output_tokens or 0
        return (
            (sla.ttft_s is None or (first - answer.due) * clock <= sla.ttft_s)
            and (sla.tpot_s is None or tokens == 1 or (tokens > 1 and (last - first) * clock / (tokens - 1) <= sla.tpot_s))
            and (sla.e2e_s is None or (last - answer.due) * clock <= sla.e2e_s)
        )

    def _tick(self, index: int, rate: float, step: Step, done: bool = False) -> None:
        now = perf_counter()
        if not done and now - self._reported < PROGRESS_S:
            return
        self._reported = now
        self._report(
            ReplayProgress(
                step=index,
                steps=len(self._job.rates),
                offered_rps=rate,
                planned=len(step.answers),
                sent=step.sent,
                ended=step.ended,
                ok=step.ok,
                attainment=step.within / step.ended if step.ended else None,
                lateness_s=step.latest * self._job.clock,
                step_done=done,
            )
        )

    def _client(self) -> ClientReport:
        """Lateness of measured requests, and the busiest step's processor share, over the steps that figures are read from."""
        rates = self._job.rates
        limit = read_up_to({rates[index]: share >= self._required for index, share in self._attainments.items()}, self._job.reference_capacity)
        counted = {index: frame for index, frame in zip(self._attainments, self._frames, strict=True) if rates[index] <= limit}
        late = np.concatenate([(f["sent_s"] - f["scheduled_s"]).drop_nulls().to_numpy() for f in (c.filter(phase="measure") for c in counted.values())])
        late = late if len(late) else np.zeros(1)
        p50, p99 = (float(np.percentile(late, q, method="inverted_cdf")) for q in (50, 99))
        return ClientReport(
            lateness_p50_s=p50,
            lateness_p99_s=p99,
            lateness_max_s=float(late.max()),
            cpu_share=max(self._cpu[index] for index in counted),
            connections=self._pool.opened,
        )
