"""Server `config`: what the endpoint is, what may be changed, and whether a change is valid. Changes nothing."""

from __future__ import annotations

from typing import Annotated

from mcp.server.mcpserver.tools import Tool
from pydantic import Field

from ..tools.contract.base import Contract, Scalar
from ..tools.contract.endpoint import BudgetSpec, EngineKind, Family, HardwareSpec, Permissions
from ..tools.contract.hypothesis import Check
from ..tools.contract.sla import SLA
from ..tools.knobs.catalogue import Catalogue
from ..tools.knobs.types import Knob
from .arguments import ToEnv, ToSet, ToUnset, intervention
from .context import Desk
from .factory import Toolbox

INSTRUCTIONS = "The endpoint under investigation, the engine arguments that may be changed, and a check of a change before it is proposed. Read-only and free."


class EndpointView(Contract):
    name: str
    engine: EngineKind
    model: str
    hardware: HardwareSpec
    sla: SLA
    args: dict[str, Scalar]
    """Engine arguments of the user's endpoint; what isn't here is at the engine's default."""
    stack_args: dict[str, Scalar]
    """Engine arguments with all accepted changes."""
    measurement_mode: str
    """http: real servers; virtual: simulated time, all figures are predictions."""
    budget: BudgetSpec
    permissions: Permissions
    alpha: float
    """Error budget of the whole campaign."""
    minimum_effect: float
    """Smallest gain in capacity worth having, as a fraction."""


class KnobView(Contract):
    name: str
    value: Scalar | None
    """In the stack so far; None: not set there."""
    default: Scalar | None
    """None: the engine decides when it starts."""
    allowed: str
    family: Family
    lossless: bool
    tunable: bool
    """False: only the user may set it, in the endpoint file."""
    meaning: str


class KnobList(Contract):
    knobs: tuple[KnobView, ...]
    more: int
    """Further matches that were left out; narrow the search to see them."""


class CheckedChange(Contract):
    valid: bool
    """Always true: a change that isn't valid is an error that says why."""
    changes: dict[str, tuple[Scalar | None, Scalar | None]]
    """Argument -> (in the stack so far, with the change)."""
    families: tuple[Family, ...]
    lossless: bool
    """The catalogue's word; a lossy change needs a person's yes where the permissions ask for it."""
    activation: tuple[Check, ...]
    """Checks that prove in the running server that the change took effect; use them as the hypothesis's activation."""
    command: tuple[str, ...]
    """Argument list of a server with the change."""


def allowed(knob: Knob) -> str:
    """A knob's values in words."""
    if knob.choices:
        return "one of " + ", ".join(knob.choices)
    bounds = [f">= {knob.minimum:g}" if knob.minimum is not None else "", f"<= {knob.maximum:g}" if knob.maximum is not None else ""]
    return " ".join([knob.kind, *(bound for bound in bounds if bound)])


def select(catalogue: Catalogue, args: dict[str, Scalar], family: Family | None, contains: str, limit: int) -> KnobList:
    """Knobs of a family whose name or meaning contains the words; those with a known meaning first.

    What the catalogue knows to have no effect isn't told: shams are made of such settings, and stay sealed until the campaign closes.
    """
    words = contains.lower()
    found = [k for k in catalogue.knobs.values() if k.access != "reserved" and family in (None, k.family) and words in f"{k.name} {k.meaning}".lower()]
    found.sort(key=lambda k: (k.access != "tunable", not k.meaning, k.family, k.name))
    views = [
        KnobView(
            name=k.name, value=args.get(k.name), default=k.default, allowed=allowed(k), family=k.family, lossless=k.lossless,
            tunable=k.access == "tunable", meaning=k.meaning[:300],
        )
        for k in found[:limit]
    ]  # fmt: skip
    return KnobList(knobs=tuple(views), more=max(0, len(found) - limit))


def config_tools(desk: Desk, prefixed: bool) -> list[Tool]:
    box = Toolbox("config", prefixed)

    @box.tool("The endpoint", reads=True)
    def endpoint() -> EndpointView:
        """The endpoint under investigation: engine and its arguments, model, hardware, SLA (bounds in seconds), budget, and what needs a person's yes. Start here."""
        e = desk.campaign.endpoint
        return EndpointView(
            name=e.name, engine=e.engine.kind, model=e.model.name, hardware=e.hardware, sla=e.sla, args=e.engine.args,
            stack_args=desk.campaign.stack().configuration.args, measurement_mode=e.measurement.mode, budget=e.budget,
            permissions=e.permissions, alpha=e.alpha, minimum_effect=e.minimum_effect,
        )  # fmt: skip

    @box.tool("Engine arguments", reads=True)
    def knobs(
        family: Annotated[Family | None, Field(description="Only this kind of lever; leave out for all.")] = None,
        contains: Annotated[str, Field(max_length=60, description="Only knobs whose name or meaning contains this text.")] = "",
        limit: Annotated[int, Field(ge=1, le=60)] = 25,
    ) -> KnobList:
        """Engine arguments that exist for this engine and version: present value, default, allowed values, lever family, lossless or not, and what each does.
        Use it to find what could be changed; narrow by family or text."""
        return select(desk.campaign.catalogue, desk.campaign.stack().configuration.args, family, contains, limit)

    @box.tool("Check a change", reads=True)
    def check(set: ToSet = {}, unset: ToUnset = (), env: ToEnv = {}) -> CheckedChange:  # noqa: B006  (never mutated; the schema shows the default)
        """Is this change to the stack so far valid for the engine? Returns what differs, whether it is lossless, the checks that prove activation, and the
        command; an unknown flag or a bad value is an error that names the nearest right one. Free: nothing is started. Call it before propose."""
        campaign, change = desk.campaign, intervention(set, unset, env)
        configuration, catalogue = campaign.check(change), campaign.catalogue
        return CheckedChange(
            valid=True,
            changes=campaign.stack().configuration.difference(configuration),
            families=tuple(sorted(catalogue.families(change))),
            lossless=catalogue.lossless(change),
            activation=catalogue.activation(change),
            command=campaign.command(configuration),
        )

    return box.tools
