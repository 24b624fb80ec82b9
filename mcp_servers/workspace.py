"""Server `workspace`: a hypothesis's change made real."""

from __future__ import annotations

from mcp.server.mcpserver.tools import Tool

from ..tools.contract.base import Contract, Scalar
from .arguments import HypothesisId
from .context import Desk
from .factory import Toolbox

INSTRUCTIONS = "Makes a hypothesis's change real: the exact configuration of the candidate server, to be looked at before it is measured."


class Candidate(Contract):
    """The candidate as it would be launched."""

    hypothesis_id: str
    configuration: str
    """Digest; equal digests mean equal servers."""
    changes: dict[str, tuple[Scalar | None, Scalar | None]]
    """Argument -> (in the stack so far, in the candidate)."""
    patch: str
    """The change as lines for the endpoint file's `engine` section, with - and + as in a diff."""
    command: tuple[str, ...]
    """Argument list of the candidate's server."""


def patch_text(changes: dict[str, tuple[Scalar | None, Scalar | None]]) -> str:
    """The changed arguments as a diff of YAML lines."""
    lines: list[str] = []
    for name, values in changes.items():
        lines += [f"{sign} {name}: {_yaml(value)}" for sign, value in zip("-+", values, strict=True) if value is not None]
    return "\n".join(lines)


def _yaml(value: Scalar) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def workspace_tools(desk: Desk, prefixed: bool) -> list[Tool]:
    box = Toolbox("workspace", prefixed)

    @box.tool("Prepare a candidate", reads=True)
    def prepare(hypothesis_id: HypothesisId) -> Candidate:
        """Make a proposed change real: the stack so far with the hypothesis's intervention, checked against the engine's own arguments. Returns its digest, the
        difference, a patch and the command. Costs nothing and launches nothing; call it before start, and mend the hypothesis if it isn't what you meant."""
        campaign = desk.campaign
        change = campaign.hypothesis(hypothesis_id).hypothesis.intervention
        configuration = campaign.check(change)
        changes = campaign.stack().configuration.difference(configuration)
        return Candidate(
            hypothesis_id=hypothesis_id, configuration=configuration.digest(), changes=changes, patch=patch_text(changes), command=campaign.command(configuration)
        )

    return box.tools
