"""The only way to a verdict: all runs of a registered experiment, measured again, judged by code."""

from __future__ import annotations

from ..contract.errors import Refused
from ..contract.experiment import Evidence
from ..contract.verdict import Verdict
from .campaigns import plan as registered_plan
from .campaigns import require_open
from .evidence import evidence, evidence_digest, evidence_runs
from .history import runs
from .project import Project
from .records import VerdictRecorded
from .runs import abort


def verdict_of(project: Project, experiment: str) -> Verdict | None:
    """The recorded verdict; None while there is none."""
    entry = project.ledger.find("verdict", experiment)
    return VerdictRecorded.model_validate(entry.body).verdict if entry else None


def record_verdict(project: Project, experiment: str, *, closed: bool = False) -> Verdict:
    """Judge the experiment and write the verdict down. A second call returns the first's.

    `closed`: no further pair will come (budget spent, or stopped by the user). Raises `Refused` for an experiment that isn't
    registered, one with a run still going, one whose rule wants another run (unless closed), and for a lossless claim that
    would be supported without parity.
    """
    if (known := verdict_of(project, experiment)) is not None:
        return known
    plan = registered_plan(project, experiment)
    while True:
        _settle(project, experiment, plan.campaign)
        seen = evidence_digest(project, experiment)
        own, floor = evidence_runs(project, experiment)
        verdict = judged(evidence(project, experiment, closed=closed))
        body = VerdictRecorded(
            campaign=plan.campaign, experiment=experiment, verdict=verdict, closed=closed, runs=tuple(run.id for run in [*own, *floor]), evidence=seen
        )
        with project.ledger.transaction():
            if (known := verdict_of(project, experiment)) is not None:
                return known
            require_open(project, plan.campaign)
            if evidence_digest(project, experiment) == seen:
                project.ledger._write("verdict", body, key=experiment)
                return verdict


def judged(evidence: Evidence) -> Verdict:
    """The verdict on the evidence, or `Refused` when the rules don't allow one yet."""
    from ..judgement.verdict import advance, judge

    plan = evidence.plan
    if strangers := [run.run for run in evidence.runs if run.kind in ("confirm", "stack") and run.series != plan.series.id()]:
        raise Refused(f"experiment {plan.id()}: runs of another series can't be evidence: {', '.join(strangers)}")
    if not evidence.closed and (following := advance(evidence)).action != "stop":
        raise Refused(f"experiment {plan.id()} isn't at its end: {following.action} ({following.reason})")
    verdict = judge(evidence)
    if verdict.verdict == "supported" and plan.lossless and (verdict.parity is None or verdict.parity.kept is not True):
        raise Refused(f"experiment {plan.id()}: a lossless change can't be supported without parity ({verdict.parity.reason if verdict.parity else 'not measured'})")
    return verdict


def _settle(project: Project, experiment: str, campaign: str) -> None:
    """Every attempt has ended; those of dead processes are aborted here."""
    for run in runs(project, campaign=campaign, experiment=experiment):
        if run.status in ("reserved", "running"):
            if run.owner.alive():
                raise Refused(f"experiment {experiment}: run {run.id} is still {run.status} (process {run.owner.pid}); finish or abort it first")
            abort(project, run.id, f"process {run.owner.pid} ended while the run was {run.status}")
