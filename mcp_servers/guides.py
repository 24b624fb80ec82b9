"""Prompts: what a person in a client picks to begin. They name tools as a client of `all` sees them."""

from __future__ import annotations

from typing import Annotated

from mcp.server import MCPServer
from pydantic import Field


def add_prompts(server: MCPServer) -> None:
    """Investigate, diagnose, write a hypothesis, review a change."""

    @server.prompt(title="Investigate an endpoint")
    def investigate(endpoint_path: Annotated[str, Field(description="Endpoint file (YAML) on the server's machine.")]) -> str:
        """Start a whole investigation and report its result."""
        return (
            f"Start an investigation of {endpoint_path} with campaign_start. Then ask campaign_status now and then, at least a minute apart, and tell me in a sentence when "
            "something changed: baseline measured, verdicts, something that waits for me. When it is closed read campaign_result and give me: capacity before and after "
            "with the interval, what was supported and refuted and why, the command of the winning server, and where report and ledger lie. Don't soften or improve a "
            "verdict: quote it."
        )

    @server.prompt(title="Diagnose an endpoint")
    def diagnose(symptom: Annotated[str, Field(description="What is bad, for example: p99 time to first token.")] = "capacity inside the SLA") -> str:
        """Find the bottleneck from the measured evidence, without changing anything."""
        return (
            f"Why is this bad: {symptom}? Read config_endpoint, ledger_overview, traffic_describe and telemetry_evidence (start experiment_baseline_start and wait with "
            "experiment_result when there is no baseline yet; say what it will cost first, with experiment_estimate). Name the bottleneck with the figures that show it: "
            "queueing (waiting_mean, running_max against max_num_seqs), KV memory (kv_usage_max, preemptions), prefill (ttft against prompt lengths, prefix_hit_share "
            "against the ideal share), decode (tpot). Say what each figure rules out, and what the evidence can't tell. Propose nothing yet."
        )

    @server.prompt(title="Write a hypothesis")
    def write_hypothesis(idea: Annotated[str, Field(description="The change you have in mind, in your words.")]) -> str:
        """Turn an idea into a testable hypothesis and register it."""
        return (
            f"Turn this idea into a hypothesis: {idea}. Check the change with config_check and take its activation checks; predict its effect with experiment_simulate, which is "
            "no evidence; pick falsifiers from telemetry_observables such that each would prove the explanation wrong (also that latency or errors get worse); then "
            "experiment_propose it and show me workspace_prepare and experiment_estimate. Start it only when I say so."
        )

    @server.prompt(title="Review a change that waits")
    def review(hypothesis_id: Annotated[str, Field(description="Id of a hypothesis that needs a person's yes.")]) -> str:
        """Prepare a person's decision on a lossy or otherwise restricted change."""
        return (
            f"Prepare my decision on hypothesis {hypothesis_id}. From ledger_overview, ledger_list and workspace_prepare tell me: what changes, why it might help, what it may cost "
            "(is it lossless?), what was measured with which interval, and what was not measured. Then ask me with experiment_ask_approval. The decision is mine."
        )
