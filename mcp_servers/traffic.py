"""Server `traffic`: what the endpoint's workload looks like. Aggregates only, never a prompt or an answer."""

from __future__ import annotations

from pathlib import Path

from mcp.server.mcpserver.tools import Tool

from ..tools.contract.base import Contract, Scalar
from ..tools.contract.endpoint import CachePolicy, WorkloadClass
from .context import Desk
from .factory import Toolbox

INSTRUCTIONS = "The endpoint's workload in figures: lengths, sharing of prefixes, arrivals. Never the text of a prompt or an answer."


class WorkloadView(Contract):
    trace: str
    """Name of the trace file."""
    workload_class: WorkloadClass
    """production: real traffic as it was; scaled: lengths or rates scaled; declared_synthetic: made up, and said so."""
    window_s: float
    """Measured part of every offered rate, in server seconds."""
    cache_policy: CachePolicy
    figures: dict[str, Scalar]
    """Requests, prompt and output tokens (mean and percentiles), ideal share of prompt tokens that an infinite prefix cache would save, mean rate."""


def traffic_tools(desk: Desk, prefixed: bool) -> list[Tool]:
    box = Toolbox("traffic", prefixed)

    @box.tool("Describe the workload", reads=True)
    def describe() -> WorkloadView:
        """The workload in figures: how long prompts and answers are, how much of the prompts a prefix cache could save, how requests arrive. Read it before you
        decide which lever family can matter: long prompts with little sharing and short prompts with long answers have different bottlenecks. Free."""
        from ..tools.experiment.workload import figures

        campaign = desk.campaign
        endpoint = campaign.endpoint
        return WorkloadView(
            trace=Path(endpoint.workload.trace).name, workload_class=endpoint.workload.workload_class, window_s=endpoint.measurement.window_s,
            cache_policy=endpoint.measurement.cache_policy, figures=figures(campaign.workload),
        )  # fmt: skip

    return box.tools
