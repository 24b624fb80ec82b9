"""Long work behind `start -> job`, waited for from a node: progress goes to the stream, a drain request stops the job."""

from __future__ import annotations

from typing import Any, Literal

from langchain_core.tools import ToolException
from langgraph.runtime import Runtime

from ..mcp_servers.jobs import FailureOf, Job, JobStatus
from ..tools.contract.errors import ServewrightError
from ..tools.experiment.views import CampaignView
from .crew import Crew

WAIT_S = 1.0
"""Longest time until a drain request is seen."""
JobTool = Literal["experiment_baseline_start", "experiment_start", "experiment_stack_start"]


class Drained(Exception):
    """The user wants to stop: the job is stopped, the node ends without a result and is entered again at the resume."""


class WorkFailed(ServewrightError):
    """The job ended without an outcome. `of` says whose failure it is."""

    def __init__(self, of: FailureOf, message: str) -> None:
        self.of = of
        super().__init__(message)


async def outcome(runtime: Runtime[Crew], tool: JobTool, **arguments: Any) -> dict[str, Any]:
    """Start the job (or find it running) and wait for its end; gives the tool server's JobResult.

    Raises `Drained`, `WorkFailed`, or `ToolException` when the start is refused.
    """
    bridge, writer = runtime.context.bridge, runtime.stream_writer
    job = Job.model_validate(await bridge.call(tool, writer, **arguments))
    while True:
        if runtime.drain_requested:
            await bridge.call("experiment_stop", job=job.id)
        result = await bridge.call("experiment_result", writer, job=job.id, wait_s=WAIT_S)
        status = JobStatus.model_validate(result["status"])
        if status.state == "done":
            return result
        if status.state == "failed" and status.failure is not None:
            raise WorkFailed(status.failure.of, status.failure.message)
        if status.state != "running":
            if runtime.drain_requested:
                raise Drained
            raise WorkFailed("rules", f"job {job.id} was stopped by someone else; 'servewright resume' goes on from its finished runs")


async def overview(runtime: Runtime[Crew]) -> CampaignView:
    """The campaign as the ledger has it now."""
    return CampaignView.model_validate(await runtime.context.bridge.call("ledger_overview"))


def refusal(error: ToolException | WorkFailed) -> str:
    """Why something was refused, in one line."""
    return " ".join(str(error).split())[:400]
