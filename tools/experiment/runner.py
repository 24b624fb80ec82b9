"""One run, from its reservation in the ledger to its record there."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from ..contract.base import digest
from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint
from ..contract.errors import EngineFailure, Refused
from ..contract.run import RunArtifacts, RunKind, RunRecord
from ..contract.series import Series
from ..ledger import runs
from ..ledger.evidence import run_record
from ..ledger.history import spent
from ..ledger.project import Project
from ..serving.custody import Cancelled
from .bench import Bench, RunRequest
from .views import Budget, Progress

Hear = Callable[[Progress], None]
BEAT_S = 2.0
PHASES: dict[RunKind, Literal["pilot", "floor", "screen", "confirm", "stack"]] = {
    "pilot": "pilot",
    "floor": "floor",
    "screen": "screen",
    "confirm": "confirm",
    "stack": "stack",
}


class BudgetSpent(Refused):
    """No further run fits the budget."""


class Runner:
    """Makes the runs of one campaign, one at a time. A run that is finished already is read, never repeated."""

    def __init__(self, project: Project, campaign: str, endpoint: Endpoint, workload: Path) -> None:
        self.project, self.campaign, self.endpoint, self.workload = project, campaign, endpoint, workload

    def budget(self) -> Budget:
        """Spent so far, failed and aborted launches included, and the limits."""
        cost, limit = spent(self.project, self.campaign), self.endpoint.budget
        return Budget(
            launches=cost.launches,
            launches_limit=limit.launches,
            replay_s=cost.replay_s,
            replay_s_limit=limit.replay_s,
            wall_s=cost.wall_s,
            wall_s_limit=limit.wall_s,
        )

    def run(
        self,
        bench: Bench,
        *,
        kind: RunKind,
        arm: Literal["baseline", "candidate"],
        pair: int,
        series: Series,
        configuration: Configuration,
        experiment: str | None = None,
        hear: Hear,
        cancel: threading.Event,
        keep_back: int = 0,
    ) -> RunRecord:
        """Reserve, launch, replay, stop, record. Raises `BudgetSpent` before a launch that the budget doesn't allow, `Cancelled` when stopped.

        `keep_back`: runs that must still be affordable after this one (the final stack's).
        """
        launches = series.policy.mode == self.endpoint.measurement.mode  # a virtual look in a real campaign starts no server
        known = runs.reserve(
            self.project,
            campaign=self.campaign,
            kind=kind,
            arm=arm,
            pair=pair,
            configuration=configuration,
            experiment=experiment,
            series=series.id(),
            launches=launches,
        )
        if known.status == "finished":
            return run_record(self.project, known)
        if launches and not (budget := self.budget()).allows(keep_back + 1):
            runs.abort(self.project, known.id, "the budget is spent")
            raise BudgetSpent(f"the budget is spent: {budget.launches}/{budget.launches_limit} launches, {budget.replay_s:.0f}/{budget.replay_s_limit:.0f} s of replay")
        if cancel.is_set():
            runs.abort(self.project, known.id, "stopped before its launch")
            raise Cancelled
        runs.start(self.project, known.id)
        label = f"{PHASES[kind]} {pair + 1}, {arm}"

        def tell(message: str, done: float, total: float) -> None:
            hear(Progress(phase=PHASES[kind], message=f"{label}: {message}", done=done, total=total))

        folder = self.project.campaign_folder(self.campaign) / "runs" / known.id
        request = RunRequest(
            configuration=configuration,
            workload=self.workload,
            window=series.window,
            ladder=series.ladder,
            reference=series.reference_capacity,
            policy=series.policy,
            launch_seed=int(digest(["launch", self.endpoint.measurement.seed, self.campaign, known.id])[:8], 16),
            folder=folder,
            probe=kind in ("floor", "confirm", "stack"),
        )
        try:
            with _Heart(lambda: runs.beat(self.project, known.id)):
                artifacts = bench.run(request, tell, cancel)
            if arm == "baseline" and artifacts.failure is not None:
                raise _baseline_failed(artifacts)
            finished = runs.finish(self.project, known.id, artifacts)
        except Cancelled:
            runs.abort(self.project, known.id, "stopped")
            raise
        except EngineFailure as failure:
            runs.abort(self.project, known.id, f"{failure.kind}: {failure.line}")
            raise
        except BaseException as error:
            runs.abort(self.project, known.id, f"{type(error).__name__} while it was measured")
            raise
        shutil.rmtree(folder, ignore_errors=True)  # its content is in the artifact store
        return run_record(self.project, finished)


def _baseline_failed(artifacts: RunArtifacts) -> EngineFailure:
    """Nothing can be compared with a baseline that doesn't serve. The attempt is aborted and may be made again: it says nothing of any hypothesis."""
    assert artifacts.failure is not None
    how = "did not start" if artifacts.failure.stage == "start" else "failed while it was measured"
    hint = f"the endpoint's own configuration {how}; mend what made it fail and resume (or start anew under another name where the endpoint file has to change)"
    return EngineFailure(artifacts.failure.kind, artifacts.failure.line, hint, artifacts.log or "")


class _Heart:
    """Beats in a thread of its own while the block runs."""

    def __init__(self, beat: Callable[[], None]) -> None:
        self._beat, self._stop = beat, threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)

    def _go(self) -> None:
        while not self._stop.wait(BEAT_S):
            self._beat()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
