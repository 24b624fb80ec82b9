"""Check a project's record against its raw files: the chain, every artifact, every figure and verdict, every seal.

What can't be seen: a ledger that was written anew as a whole, raw files and anchor included. Who wants to be sure of that keeps
the head's hash (a report names it) elsewhere and gives it to `verify`. Entries cut off at the end are seen by the anchor beside the
ledger as long as nobody changed that too, and otherwise by a kept head, or by raw files that no entry names.
"""

from __future__ import annotations

from ..contract.base import Contract
from ..contract.errors import ServewrightError
from ..contract.experiment import STOPPING_RULE, ExperimentPlan
from .campaigns import plans, recorded
from .chain import check_chain
from .compare import differences
from .evidence import evidence, evidence_digest, evidence_runs, measure_again
from .floors import compute_floor, unusable
from .history import Run, runs
from .project import Project
from .records import CampaignClosed, FloorRecorded, VerdictRecorded
from .seals import opens
from .store import StorageFailure
from .verdicts import judged


class Verification(Contract):
    """`problems` is empty exactly when nothing was found wrong. `notices` are worth knowing and no fault."""

    entries: int
    runs: int
    artifacts: int
    verdicts: int
    head: str
    """Hash of the newest entry: keep it elsewhere and hand it to a later `verify`."""
    problems: tuple[str, ...]
    notices: tuple[str, ...]


def verify(project: Project, *, head: str | None = None) -> Verification:
    """Never raises for a damaged record: that is what it reports. `head`: a hash kept from earlier."""
    ledger = project.ledger
    problems: list[str] = []
    notices = [] if ledger.head_path.is_file() else [f"{ledger.head_path.name} is missing: entries cut off at the end could not be seen"]
    counts = {"runs": 0, "artifacts": 0, "verdicts": 0}
    number, newest = 0, ""
    try:
        found, readable = check_chain(ledger, head)
        problems += found
        number, newest = ledger.head()
        if readable:
            counts = _recompute(project, problems, notices)
        else:
            notices.append("figures and verdicts were not computed again, because entries can't be read")
    except StorageFailure as error:
        problems.append(str(error))
    return Verification(entries=number, head=newest, problems=tuple(problems), notices=tuple(notices), **counts)


def _recompute(project: Project, problems: list[str], notices: list[str]) -> dict[str, int]:
    every = runs(project)
    named = _artifacts(project)
    problems += [problem for name in sorted(named) if (problem := project.store.verify(name))]
    problems += _lives(project, every) + _measurements(project, every) + _floors(project, every) + _closings(project)
    wrong, more = _verdicts(project)
    problems += wrong
    notices += more + _notices(project, every, named)
    return {"runs": len(every), "artifacts": len(named), "verdicts": len(project.ledger.entries("verdict"))}


def _artifacts(project: Project) -> set[str]:
    fields = {"run_finished": ("rows", "log", "probe"), "approval": ("packet",)}
    return {entry.body[field] for entry in project.ledger.entries(*fields) for field in fields[entry.kind] if entry.body[field]}


def _lives(project: Project, every: list[Run]) -> list[str]:
    """Runs went through their states in order, and fit their experiment."""
    problems: list[str] = []
    order: dict[str, list[str]] = {}
    for entry in project.ledger.entries("run_reserved", "run_started", "run_finished", "run_aborted"):
        order.setdefault(str(entry.key), []).append(entry.kind.removeprefix("run_"))
    whole = [["reserved"], ["reserved", "started"], ["reserved", "started", "finished"], ["reserved", "started", "aborted"], ["reserved", "aborted"]]
    problems += [f"run {name}: its entries are {', '.join(steps)}" for name, steps in order.items() if steps not in whole]
    registered = {plan.id(): plan for plan in recorded(project, "experiment", ExperimentPlan)}
    for run in every:
        key = run.reserved
        plan = registered.get(key.experiment or "")
        if run.id != key.id():
            problems.append(f"run {run.id}: its name isn't that of its key")
        if key.experiment is not None and plan is None:
            problems.append(f"run {run.id}: experiment {key.experiment} isn't registered")
        elif plan and key.configuration != (plan.baseline if key.arm == "baseline" else plan.candidate):
            problems.append(f"run {run.id}: its configuration isn't the plan's")
        elif plan and key.kind in ("confirm", "stack") and key.series != plan.series.id():
            problems.append(f"run {run.id}: it is of another series than its experiment")
    return problems


def _measurements(project: Project, every: list[Run]) -> list[str]:
    problems: list[str] = []
    for run in every:
        if run.finished is not None:
            try:
                problems += [f"run {run.id}: {line}" for line in differences(run.finished.measurement, measure_again(project, run))]
            except ServewrightError as error:
                problems.append(f"run {run.id}: can't be measured again: {error}")
    return problems


def _floors(project: Project, every: list[Run]) -> list[str]:
    problems: list[str] = []
    ends = {entry.key: entry.seq for entry in project.ledger.entries("run_finished")}
    for entry in project.ledger.entries("floor"):
        body = FloorRecorded.model_validate(entry.body)
        known = {*body.runs, *body.left_out}
        for run in every:
            key = run.reserved
            if (key.kind, key.series, key.campaign) == ("floor", body.series, body.campaign) and ends.get(run.id, entry.seq) < entry.seq and run.id not in known:
                problems.append(f"entry {entry.seq} (floor): run {run.id} was left out")
        try:
            problems += [f"entry {entry.seq} (floor): run {run.id} can be used, but was left out" for run in every if run.id in body.left_out and not unusable(run)]
            problems += [f"entry {entry.seq} (floor): {line}" for line in differences(body.floor, compute_floor(project, every, body.runs, body.pooled))]
        except (ServewrightError, KeyError) as error:
            problems.append(f"entry {entry.seq} (floor): can't be computed again: {error}")
    return problems


def _verdicts(project: Project) -> tuple[list[str], list[str]]:
    problems: list[str] = []
    notices: list[str] = []
    for entry in project.ledger.entries("verdict"):
        body = VerdictRecorded.model_validate(entry.body)
        where = f"verdict on {body.experiment}"
        try:
            given = evidence(project, body.experiment, closed=body.closed)
            own, floor = evidence_runs(project, body.experiment)
            if tuple(run.id for run in [*own, *floor]) != body.runs or evidence_digest(project, body.experiment) != body.evidence:
                problems.append(f"{where}: its evidence isn't all finished runs of the experiment")
            elif given.plan.rule != STOPPING_RULE:
                notices.append(f"{where}: made by rule {given.plan.rule}; this version has {STOPPING_RULE} and can't compute it again")
            else:
                problems += [f"{where}: {line}" for line in differences(body.verdict, judged(given))]
        except ServewrightError as error:
            problems.append(f"{where}: can't be computed again: {error}")
    return problems, notices


def _closings(project: Project) -> list[str]:
    problems: list[str] = []
    for entry in project.ledger.entries("campaign_closed"):
        body = CampaignClosed.model_validate(entry.body)
        seals = {str(e.key): str(e.body["seal"]) for e in project.ledger.entries("hypothesis", campaign=body.campaign)}
        bad = [opening.hypothesis for opening in body.openings if not opens(seals.get(opening.hypothesis, ""), opening)]
        bad += sorted(set(seals) - {opening.hypothesis for opening in body.openings})
        problems += [f"campaign {body.campaign}: the seal of hypothesis {name} isn't opened by what was said at its closing" for name in bad]
        found: dict[str, int] = {}
        for other in project.ledger.entries(campaign=body.campaign):
            if other.seq < entry.seq:
                found[other.kind] = found.get(other.kind, 0) + 1
            elif other.seq > entry.seq and other.kind != "note":
                problems.append(f"campaign {body.campaign}: entry {other.seq} ({other.kind}) came after its closing")
        problems += [f"campaign {body.campaign}: {line}" for line in differences(body.entries, found)]
    return problems


def _notices(project: Project, every: list[Run], named: set[str]) -> list[str]:
    notices: list[str] = []
    if strays := [name for name in project.store.names() if name not in named]:
        notices.append(f"{len(strays)} raw files that no entry names (left by interrupted runs, or of entries that were cut off): {strays[0]} ...")
    if going := [run.id for run in every if run.status in ("reserved", "running")]:
        notices.append(f"runs without an end: {', '.join(going)}")
    judged_already = {entry.key for entry in project.ledger.entries("verdict")}
    for entry in project.ledger.entries("campaign_opened"):
        thread = str(entry.key)
        if project.ledger.find("campaign_closed", thread) is None:
            notices.append(f"campaign {thread} isn't closed")
        waiting = [plan.id() for plan in plans(project, thread) if plan.id() not in judged_already]
        if waiting:
            notices.append(f"campaign {thread}: no verdict yet on {', '.join(waiting)}")
    return notices
