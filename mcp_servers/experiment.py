"""Server `experiment`: propose hypotheses and have them tested. Nothing here writes a verdict or leaves out a run."""

# No postponed annotations: the SDK resolves them outside this function, where the local resolver isn't known.
from typing import Annotated

from anyio import sleep
from mcp.server.mcpserver import AcceptedElicitation, Context, Elicit, ElicitationResult, Resolve
from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from ..tools.contract.base import Contract
from ..tools.contract.errors import Refused
from ..tools.contract.hypothesis import Hypothesis
from ..tools.contract.verdict import Verdict
from ..tools.experiment.views import BaselineView, Closing, Estimate, HypothesisView, SimulatedEffect
from .approvals import Approval, question, record
from .arguments import HypothesisId, JobId, ToEnv, ToSet, ToUnset, intervention
from .context import Desk
from .factory import Toolbox
from .jobs import Job, JobStatus

INSTRUCTIONS = (
    "Tests ideas about one LLM serving endpoint by measurement. Order: baseline_start, then propose and start for each hypothesis, "
    "stack_start, close. Long work runs as a job: start returns at once, result waits. Verdicts are computed from all runs; no tool can write one."
)
STEP_S = 0.1


class BaselineSummary(Contract):
    capacity_rps_per_gpu: float
    noise_sd: float
    """Standard deviation of log capacity over identical runs: 0.02 = 2 %."""
    minimum_detectable_effect: float
    """Fraction: smaller gains can't be told from noise within the budget."""
    warnings: tuple[str, ...]


class JobResult(Contract):
    """How a job stands, and what came of it."""

    status: JobStatus
    baseline: BaselineSummary | None = None
    """Of a finished baseline job."""
    verdict: Verdict | None = None
    """Of a finished experiment or stack job; None for a stack in which nothing was accepted."""
    next: str
    """What to do now."""


def experiment_tools(desk: Desk, prefixed: bool) -> list[Tool]:
    box = Toolbox("experiment", prefixed)

    def ask_to_try(hypothesis_id: HypothesisId, context: Context) -> Approval | Elicit[Approval] | None:
        view = desk.campaign.hypothesis(hypothesis_id)
        return question(desk.campaign, str(desk.thread), view, context) if view.state == "needs_approval" else None

    def ask_to_keep(hypothesis_id: HypothesisId, context: Context) -> Approval | Elicit[Approval] | None:
        view = desk.campaign.hypothesis(hypothesis_id)
        waits = view.state == "needs_approval" or hypothesis_id in desk.campaign.stack().awaiting_approval
        return question(desk.campaign, str(desk.thread), view, context) if waits else None

    def baseline_summary() -> BaselineSummary | None:
        view: BaselineView | None = desk.campaign.view().baseline
        if view is None:
            return None
        return BaselineSummary(
            capacity_rps_per_gpu=view.capacity_rps_per_gpu, noise_sd=view.floor.sd, minimum_detectable_effect=view.minimum_detectable_effect, warnings=view.warnings
        )

    def look(job: str) -> JobResult:
        """The job as this process knows it, or as the ledger does after a restart."""
        status = desk.jobs.status(job)
        outcome = desk.jobs.outcome(job)
        verdict = outcome if isinstance(outcome, Verdict) else None
        if status is None:
            if job == "baseline" and desk.campaign.view().baseline is not None:
                status = JobStatus(job=job, kind="baseline", state="done", progress=None, seconds=0)
            elif job not in ("baseline", "stack") and (verdict := desk.campaign.hypothesis(job).verdict) is not None:
                status = JobStatus(job=job, kind="experiment", state="done", progress=None, seconds=0)
            else:
                raise Refused(f"job {job} was not started in this server and has no result yet: start it (again); what the ledger already holds is not measured twice")
        done_baseline = status.kind == "baseline" and status.state == "done"
        return JobResult(status=status, baseline=baseline_summary() if done_baseline else None, verdict=verdict, next=advice(status, verdict))

    @box.tool("Measure the baseline")
    def baseline_start() -> Job:
        """Start measuring the endpoint as it is now: finds its capacity, then repeats identical runs for the noise floor. Do this first; all else is compared
        with it. Costs several launches and minutes (ask estimate before). Returns a job at once: follow it with result. Repeating the call is safe."""
        campaign = desk.campaign
        if campaign.view().baseline is not None:
            return Job(id="baseline", kind="baseline", state="done")
        return desk.jobs.start("baseline", "baseline", campaign.baseline)

    @box.tool("Estimate the cost", reads=True)
    def estimate(
        hypothesis_id: Annotated[HypothesisId | None, Field(description="A proposed hypothesis; leave out for the baseline.")] = None,
    ) -> Estimate:
        """What a measurement will cost, in launches and wall seconds, and whether the budget affords it. Costs nothing. Call it before a start."""
        if hypothesis_id is None:
            return desk.campaign.estimate_baseline()
        return desk.campaign.estimate(desk.campaign.hypothesis(hypothesis_id).id)

    @box.tool("Simulate a change", name="simulate", reads=True)
    def simulate(set: ToSet = {}, unset: ToUnset = (), env: ToEnv = {}) -> SimulatedEffect:  # noqa: B006  (never mutated; the schema shows the default)
        """Predict the effect of a change with a simulator, in a second or so and without launching anything. Use it to choose among ideas and to set a
        hypothesis's prediction. It is a model's opinion, never evidence: only start measures."""
        return desk.campaign.simulate(intervention(set, unset, env))

    @box.tool("Propose a hypothesis")
    def propose(
        hypothesis: Annotated[Hypothesis, Field(description="Explanation, intervention, prediction, falsification: all four are required.")],
    ) -> HypothesisView:
        """Register one testable idea. Costs no measurement. It must say the mechanism (explanation), what to change (intervention), what will be seen
        (prediction), at least one check that would prove it wrong (falsifiers: refuted when ANY is true) and checks that the change took effect in the
        running server (activation: ALL must be true; e.g. observable config.max_num_seqs == 64). Checks name registered observables such as
        capacity_rps_per_gpu, ttft_p99_s@1.0 (at 1.0 times the baseline's capacity), preemptions, config.<flag>; list them with telemetry's observables.
        Returns its id and state: pending (start it), needs_approval (start asks a person), denied. The same idea twice returns the first."""
        return desk.campaign.propose(hypothesis)

    @box.tool("Test a hypothesis")
    def start(hypothesis_id: HypothesisId, answer: Annotated[ElicitationResult[Approval], Resolve(ask_to_try)]) -> Job:
        """Start the experiment that tries to refute one hypothesis: fresh launches, baseline and candidate interleaved, on held-out traffic. Costs launches
        and minutes (see estimate). Returns a job at once: follow it with result. One measurement at a time. Where the endpoint's permissions ask for it, a
        person is asked first. Repeating the call is safe: a judged hypothesis returns its verdict, nothing is measured twice."""
        view = desk.campaign.hypothesis(hypothesis_id)
        if view.state == "needs_approval" and not (isinstance(answer, AcceptedElicitation) and answer.data is None):
            view = record(desk.campaign, hypothesis_id, answer)
        if view.state == "denied":
            raise Refused(f"hypothesis {hypothesis_id} was denied ({view.note or 'by permissions or by a person'}): it is not tried; propose another one")
        if view.state == "judged":
            return Job(id=hypothesis_id, kind="experiment", state="done")
        campaign = desk.campaign
        return desk.jobs.start(hypothesis_id, "experiment", lambda progress, cancel: campaign.run(hypothesis_id, progress, cancel))

    @box.tool("Ask a person about a change")
    def ask_approval(hypothesis_id: HypothesisId, answer: Annotated[ElicitationResult[Approval], Resolve(ask_to_keep)]) -> HypothesisView:
        """Put a change before a person: before it is tried (state needs_approval), or, for a supported lossy one, before it joins the stack. The person's
        answer is recorded. Does nothing when no answer is due. You can't answer for the person."""
        if isinstance(answer, AcceptedElicitation) and answer.data is None:
            return desk.campaign.hypothesis(hypothesis_id)
        return record(desk.campaign, hypothesis_id, answer)

    @box.tool("Measure the stack")
    def stack_start() -> Job:
        """Start measuring all accepted changes together against the original baseline, at an error rate of its own. Do it once, when no hypothesis is left to
        try and before close. Costs launches and minutes. Returns a job at once: follow it with result. Repeating the call is safe."""
        return desk.jobs.start("stack", "stack", desk.campaign.measure_stack)

    @box.tool("Status of a job", reads=True)
    def status(job: JobId) -> JobStatus:
        """How a job stands, at once: state, latest progress, wall seconds. To wait for its end use result."""
        return look(job).status

    @box.tool("Result of a job", reads=True)
    async def result(
        job: JobId,
        context: Context,
        wait_s: Annotated[float, Field(ge=0, le=30, description="Longest wait for the job's end, in wall seconds.")] = 20,
    ) -> JobResult:
        """Wait for a job and return what came of it: a summary for the baseline, the verdict for an experiment or the stack. Progress is notified while
        waiting. When status.state is still 'running', call it again; the job goes on whether or not you wait."""
        waited = 0.0
        while True:
            for number, update in desk.jobs.news(job):
                share = f" ({update.done:g} of {update.total:g})" if update.total else ""
                await context.report_progress(number, None, f"{update.message}{share}")
            known = desk.jobs.status(job)
            if known is None or known.state != "running" or waited >= wait_s:
                break
            await sleep(STEP_S)
            waited += STEP_S
        return look(job)

    @box.tool("Stop a job", destroys=True)
    def stop(job: JobId) -> JobStatus:
        """End a running job and its servers. The interrupted run is lost and stays in the record as aborted; finished runs are kept, and starting again goes on
        from them. Use it only when the user wants the hardware back."""
        return desk.jobs.stop(job) or status(job)

    @box.tool("Close the campaign", destroys=True)
    def close() -> Closing:
        """End the campaign: nothing is measured after it, sealed facts (which candidates were shams) are opened, and the report is written. Refused while
        hypotheses are pending and budget is left. Returns the result in one sentence and the command line of the winning server."""
        return desk.campaign.close()

    return box.tools


def advice(status: JobStatus, verdict: Verdict | None) -> str:
    """The next step after a look at a job."""
    if status.state == "running":
        return "call result again; the job goes on"
    if status.state == "stopped":
        return "start it again to go on from the finished runs"
    if status.state == "failed":
        return "read status.failure: it says what went wrong and, where it can be mended, how"
    if status.kind == "baseline":
        return "read telemetry's evidence, then propose hypotheses"
    if status.kind == "stack":
        return "close the campaign"
    if verdict is not None and verdict.verdict == "supported":
        return "accepted into the stack, or waiting for a person if it is lossy (see overview); the next hypothesis is compared with the stack"
    return "go on with the next hypothesis; a verdict is final"
