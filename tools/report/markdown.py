"""The report of a campaign, in Markdown, from its ledger alone."""

from __future__ import annotations

import shlex

from ..contract.experiment import ExperimentPlan
from ..contract.verdict import Verdict
from ..ledger.project import Project
from .facts import Facts, gather, geometric_mean
from .words import cell, change, effect, interval, percent, prediction, table


def render(project: Project, thread: str) -> str:
    """Raises `BadInput` for a thread that the ledger doesn't know. Says so where the campaign isn't closed yet."""
    facts = gather(project, thread)
    parts = [
        f"# {facts.opened.endpoint.name}: report of {thread}",
        cell(sentence(facts)),
        _state(facts),
        _endpoint(facts),
        _baseline(facts),
        _hypotheses(facts),
        _verdicts(facts),
        _stack(facts),
        _shams(facts),
        _families(facts),
        _budget(facts),
        _command(facts),
        _checking(project, facts),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def sentence(facts: Facts) -> str:
    """The result in one sentence."""
    if facts.closed and facts.closed.summary.result:
        return facts.closed.summary.result
    final = facts.final()
    if final is not None:
        plan, verdict = final
        if verdict.verdict == "supported":
            return f"Capacity rises from {_capacity(facts, plan, 'baseline')} to {_capacity(facts, plan, 'candidate')} requests/s per GPU: {effect(verdict)}."
        return f"The {'comparison' if plan.purpose == 'compare' else 'stack as a whole'} is {verdict.verdict}: {verdict.reason}."
    if facts.floor is None:
        return "The baseline has not been measured."
    kept = [plan for plan in facts.plans if (verdict := facts.verdict(plan)) and verdict.verdict == "supported"]
    return f"{len(kept)} changes are supported, and not yet measured together." if kept else "Nothing found that the budget could detect."


def _state(facts: Facts) -> str:
    if facts.compares:
        return ""
    if facts.closed is None:
        return "**The investigation isn't closed**: what follows is how it stands now."
    return f"It ended because: {cell(facts.closed.summary.stopped)}." if facts.closed.summary.stopped else ""


def _endpoint(facts: Facts) -> str:
    end, series = facts.opened.endpoint, facts.series
    bounds = [f"{name} ≤ {value:g} s" for name, value in (("TTFT", end.sla.ttft_s), ("TPOT", end.sla.tpot_s), ("end to end", end.sla.e2e_s)) if value is not None]
    lines = [
        f"- Engine: {end.engine.kind}" + (f", {series.engine_build}" if series else ""),
        f"- Model and hardware: {end.model.name} on {end.hardware.gpus} x {end.hardware.profile}",
        f"- SLA: {', '.join(bounds)}, kept by {end.sla.attainment:.0%} of requests",
        f"- Workload: {end.workload.workload_class.replace('_', ' ')}" + (f"; {series.window.replace('_', '-')} window, rates {_ladder(series.ladder)}" if series else ""),
    ]
    if end.measurement.mode == "virtual":
        lines.append("- **Measured in virtual time: all figures are the simulator's predictions, not measurements of a server.**")
    elif end.measurement.clock != 1:
        lines.append(f"- The embedded engine's clock ran {end.measurement.clock:g} times as fast as the wall's; all figures are in its seconds.")
    return "## Endpoint\n\n" + "\n".join(lines)


def _ladder(rates: tuple[float, ...]) -> str:
    if len(rates) > 10:
        return f"{rates[0]:.3g} to {rates[-1]:.3g} requests/s in {len(rates)} steps"
    return ", ".join(f"{rate:.3g}" for rate in rates) + " requests/s"


def _baseline(facts: Facts) -> str:
    if facts.floor is None or facts.baseline is None:
        return "## Baseline\n\nNot measured."
    floor = facts.floor
    values = ", ".join(f"{value:.3f}" for value in floor.values)
    lines = [
        f"Capacity {facts.baseline:.3f} requests/s per GPU, median of {len(floor.values)} identical launches ({values}).",
        f"Noise floor: {floor.sd:.2%} (standard deviation of log capacity, {floor.df} degrees of freedom, 95% interval {floor.low:.2%} to {floor.high:.2%}).",
    ]
    if floor.drift:
        lines.append(f"Seen in the runs: {cell(floor.drift)}.")
    if unfit := facts.invalid_runs():
        lines.append("Runs that were not fit to judge by: " + "; ".join(f"`{name}`: {cell(why)}" for name, why in unfit.items()) + ".")
    return "## Baseline\n\n" + "\n".join(lines)


def _hypotheses(facts: Facts) -> str:
    if not facts.hypotheses:
        return ""
    rows = [
        (
            f"`{name}` {one.hypothesis.title} ({one.hypothesis.family}, {'lossless' if one.lossless else 'lossy'}; by {one.hypothesis.proposer})",
            one.hypothesis.explanation,
            change(one.hypothesis.intervention),
            prediction(one.hypothesis.prediction),
            "refuted if " + " or ".join(str(check) for check in one.hypothesis.falsifiers),
        )
        for name, one in facts.hypotheses.items()
    ]
    return "## Hypotheses\n\n" + table(("hypothesis", "explanation", "intervention", "prediction", "falsification"), rows)


def _verdicts(facts: Facts) -> str:
    if not facts.plans:
        return ""
    rows = [(str(plan.number), _subject(facts, plan), *_verdict_cells(facts.verdict(plan))) for plan in facts.plans]
    note = "Intervals are of confirmation pairs only, at level 1 - 2 alpha: the lower end is above zero exactly when \"no gain\" is rejected at alpha."
    return f"## Verdicts\n\n{table(('no.', 'experiment', 'verdict', 'effect on capacity', 'pairs', 'parity', 'prediction', 'reason'), rows)}\n\n{note}"


def _subject(facts: Facts, plan: ExperimentPlan) -> str:
    what = {"stack": "the stack as a whole", "compare": plan.hypothesis.title, "hypothesis": plan.hypothesis.title}[plan.purpose]
    return f"{what} (`{plan.id()}`" + (f" on `{facts.hypothesis_of(plan)}`)" if plan.purpose == "hypothesis" else ")")


def _verdict_cells(verdict: Verdict | None) -> tuple[str, ...]:
    if verdict is None:
        return ("none yet", "", "", "", "", "")
    parity = "-" if verdict.parity is None else {True: "kept", False: "broken", None: "not measured"}[verdict.parity.kept]
    hit = {True: "came true", False: "missed", None: "-"}[verdict.predicted]
    return (verdict.verdict, effect(verdict), str(verdict.pairs), parity, hit, verdict.reason)


def _capacity(facts: Facts, plan: ExperimentPlan, arm: str) -> str:
    value = geometric_mean(facts.capacities(plan, arm))
    return "?" if value is None else f"{value:.3f}"


def _stack(facts: Facts) -> str:
    final = facts.final()
    if facts.compares and final is None:
        return ""
    if facts.stack is None and final is None:
        return "## Final stack\n\nThe original configuration: no change was accepted."
    lines: list[str] = []
    for name in facts.stack.accepted if facts.stack else ():
        one = facts.hypotheses.get(name)
        lines.append(f"- `{name}` " + (f"{cell(one.hypothesis.title)}: {change(one.hypothesis.intervention)}" if one else ""))
    if final is None:
        return "## Final stack\n\n" + "\n".join([*lines, "", "Not yet measured as a whole."])
    plan, verdict = final
    before, after = geometric_mean(facts.capacities(plan, "baseline")), geometric_mean(facts.capacities(plan, "candidate"))
    if before is not None and after is not None:
        bounds = ""
        if verdict.interval is not None:
            low, high = (before * (1 + end) for end in verdict.interval)
            bounds = f" (interval {low:.3f} to {high:.3f}: that of a ratio, shown on this baseline)"
        lines += ["", f"Capacity per GPU: **{after:.3f}** requests/s{bounds}, baseline in the same pairs {before:.3f}: {percent(after / before - 1)}{interval(verdict)}."]
    lines += ["", f"Verdict on it (`{plan.id()}`): **{verdict.verdict}**, {cell(verdict.reason)}."]
    if verdict.verdict != "supported" and plan.purpose != "compare":
        lines.append("The changes did not hold up together: keep the original configuration.")
    guards = [(str(result.check), {True: "holds", False: "broken", None: "can't be told"}[result.holds], result.reason) for result in verdict.guardrails]
    head = "Comparison" if facts.compares else "Final stack"
    return f"## {head}\n\n" + "\n".join(lines).strip() + (f"\n\n{table(('guardrail', 'state', 'figure'), guards)}" if guards else "")


def _shams(facts: Facts) -> str:
    if facts.compares:
        return ""
    if facts.closed is None:
        return "## Shams\n\nWhether candidates identical to the baseline were planted, and which, is sealed until the investigation closes."
    names = facts.shams()
    if not names:
        return "## Shams\n\nNone was planted."
    verdicts = {facts.hypothesis_of(plan): facts.verdict(plan) for plan in facts.plans if plan.purpose == "hypothesis"}
    rows = []
    for name in names:
        verdict = verdicts.get(name)
        rows.append((f"`{name}` {facts.hypotheses[name].hypothesis.title}", verdict.verdict if verdict else "not tried", effect(verdict) if verdict else ""))
    kept = sum(row[1] == "supported" for row in rows)
    return f"## Shams\n\nPlanted candidates that can't be better than the baseline: {len(rows)}, of which kept: **{kept}**.\n\n" + table(("sham", "verdict", "effect"), rows)


def _families(facts: Facts) -> str:
    if facts.compares:
        return ""
    fates = {note.data["family"]: f"{note.data.get('fate', '')}: {note.data.get('reason', '')}" for note in facts.notes if "family" in note.data}
    fates |= facts.closed.summary.families if facts.closed else {}
    for plan in facts.plans:
        if plan.purpose == "hypothesis" and plan.hypothesis.family not in fates:
            verdict = facts.verdict(plan)
            fates[plan.hypothesis.family] = f"tried: {verdict.verdict if verdict else 'no verdict yet'}"
    return "## Lever families\n\n" + table(("family", "fate"), sorted(fates.items())) if fates else ""


def _budget(facts: Facts) -> str:
    limit, cost = facts.opened.endpoint.budget, facts.spent
    aborted = sum(run.status == "aborted" for run in facts.runs)
    rows = [
        ("launches", str(cost.launches), str(limit.launches)),
        ("replay, wall seconds", f"{cost.replay_s:.0f}", f"{limit.replay_s:.0f}"),
        ("runs from allocation to teardown, wall seconds", f"{cost.wall_s:.0f}", f"{limit.wall_s:.0f}"),
    ]
    return "## Budget\n\n" + table(("what", "spent", "allowed"), rows) + (f"\n\nAborted attempts: {aborted}; what they cost is counted." if aborted else "")


def _command(facts: Facts) -> str:
    if facts.closed is None or not facts.closed.summary.command:
        return ""
    return f"## Command of the winning server\n\n```\n{shlex.join(facts.closed.summary.command)}\n```"


def _checking(project: Project, facts: Facts) -> str:
    number, head = facts.head
    return (
        f"## How to check this\n\n```\nservewright ledger verify --project {shlex.quote(str(project.folder))} --head {head}\n```\n\n"
        f"It follows the hash chain through all entries ({number} when this was written), checks every raw file's digest, and computes every figure and verdict again from the raw rows. "
        "Keep the head's hash elsewhere: with it, a ledger that was cut off or written anew as a whole is noticed too."
    )
