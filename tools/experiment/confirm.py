"""Carry out a registered experiment: screen, pairs in random order, judge."""

from __future__ import annotations

import threading
from typing import Literal

from ..contract.experiment import ExperimentPlan
from ..contract.run import RunKind
from ..contract.verdict import Verdict
from ..judgement.verdict import advance
from ..ledger.campaigns import open_series
from ..ledger.evidence import evidence
from ..ledger.verdicts import record_verdict, verdict_of
from .baseline import series_for
from .bench import Bench
from .policy import at_clock
from .runner import BudgetSpent, Hear, Runner
from .views import Progress


def carry_out(runner: Runner, plan: ExperimentPlan, bench: Bench, screen_bench: Bench, hear: Hear, cancel: threading.Event, keep_back: int = 0) -> Verdict:
    """Make every run that the rule asks for, then have the ledger judge. Safe to call again: finished runs are read.

    `keep_back`: runs that must stay affordable. Raises `EngineFailure` when the baseline fails, `Cancelled` when stopped. A budget that ends closes the experiment: it is judged on what there is.
    """
    experiment, closed = plan.id(), False
    if (known := verdict_of(runner.project, experiment)) is not None:
        return known
    while (todo := advance(evidence(runner.project, experiment))).action != "stop":
        try:
            if todo.action == "screen":
                _pair(runner, plan, screen_bench, "screen", todo.pair, hear, cancel, keep_back)
            else:
                _pair(runner, plan, bench, "stack" if plan.purpose == "stack" else "confirm", todo.pair, hear, cancel, keep_back)
        except BudgetSpent:
            closed = True
            break
    hear(Progress(phase="judge", message=f"experiment {plan.number}: judging"))
    return record_verdict(runner.project, experiment, closed=closed)


def _pair(runner: Runner, plan: ExperimentPlan, bench: Bench, kind: RunKind, number: int, hear: Hear, cancel: threading.Event, keep_back: int) -> None:
    """Both arms, fresh launches, in the order that the plan's seed gives. A pair that the budget can't complete isn't begun."""
    series = plan.series
    if kind == "screen":
        mode = "virtual" if plan.screen == "virtual" else None
        series = series_for(
            at_clock(runner.endpoint, series.policy.clock),
            workload=series.workload,
            build=bench.build(),
            window="explore",
            ladder=series.ladder,
            reference=series.reference_capacity,
            short=plan.screen == "virtual",  # a real screen is as long as the floor's runs: it is judged by their noise
            mode=mode,
        )
        open_series(runner.project, runner.campaign, series)
    first = plan.first_arm(number)
    second: Literal["baseline", "candidate"] = "candidate" if first == "baseline" else "baseline"
    for arm in (first, second):
        configuration = plan.baseline if arm == "baseline" else plan.candidate
        record = runner.run(
            bench,
            kind=kind,
            arm=arm,
            pair=number,
            series=series,
            configuration=configuration,
            experiment=plan.id(),
            hear=hear,
            cancel=cancel,
            keep_back=keep_back + (arm == first),
        )
        if record.failure is not None:
            return  # the candidate can't be run: nothing more is spent on it
