"""What the playbook knows: read from the messages of the conversation, as a model would read them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...tools.contract.base import Scalar, canonical
from ...tools.experiment.views import BaselineView, CampaignView, SimulatedEffect

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

Change = dict[str, Scalar]
"""Engine arguments to set."""


FAR = 1.2
"""Stack over baseline capacity."""


class NeedsSimulation(Exception):
    """A rule wants to know what these changes would do before it says anything."""

    def __init__(self, changes: list[Change]) -> None:
        self.changes = changes
        super().__init__(f"{len(changes)} changes to simulate")


@dataclass(frozen=True)
class Facts:
    baseline: BaselineView
    view: CampaignView
    endpoint: dict[str, Any]
    """`config_endpoint`'s answer: engine, hardware, sla, permissions, minimum_effect."""
    knobs: tuple[dict[str, Any], ...] = ()
    """Knobs of the family under investigation."""
    simulated: dict[bytes, SimulatedEffect | str] = field(default_factory=dict)
    """Change (canonical JSON) -> prediction, or why there is none."""

    def arg(self, name: str) -> Scalar | None:
        """The argument's value in the stack so far, as the server reports it where the stack leaves it alone."""
        if name in self.view.stack.changes:
            return self.view.stack.changes[name][1]
        return self.baseline.effective.get(name, self.endpoint.get("stack_args", {}).get(name))

    def number(self, name: str) -> float | None:
        value = self.arg(name)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    def seen(self, observable: str) -> float | None:
        """A figure of the server as it is now: measured while nothing has been accepted, simulated after that (see `source`)."""
        figures: Mapping[str, Scalar] = self.baseline.observables if not self.view.stack.changes else self._as_it_is()
        value = figures.get(observable)
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    @property
    def source(self) -> str:
        return "measured" if not self.view.stack.changes else "simulated for the stack so far, not measured"

    def effect(self, change: Change) -> SimulatedEffect | str:
        """What the simulator says of the change. Raises `NeedsSimulation` when it hasn't been asked."""
        return self.effects([change])[0]

    def effects(self, changes: Sequence[Change]) -> list[SimulatedEffect | str]:
        """The same for several, asked all at once."""
        missing = [change for change in changes if canonical(change) not in self.simulated]
        if missing:
            raise NeedsSimulation(missing)
        return [self.simulated[canonical(change)] for change in changes]

    def _as_it_is(self) -> Mapping[str, Scalar]:
        """The stack's own figures by the simulator: asked with an argument set to the value that it has."""
        name, (_, value) = next(iter(self.view.stack.changes.items()))
        known = self.effect({name: value}) if value is not None else "the stack takes an argument away"
        return known.observables if isinstance(known, SimulatedEffect) else self.baseline.observables

    @property
    def moved(self) -> bool:
        """The stack's capacity is so far from the baseline's that figures at multiples of the baseline's capacity say little about what binds now."""
        if not self.view.stack.changes:
            return False
        capacity = self.seen("capacity_rps_per_gpu")
        return capacity is None or capacity > FAR * self.baseline.capacity_rps_per_gpu

    def sla(self, bound: str) -> float | None:
        return self.endpoint.get("sla", {}).get(bound)

    def workload(self, name: str) -> float | None:
        """A figure of the trace, by its name in `servewright trace describe` or in the workload's own summary."""
        value = self.baseline.workload.get(f"figures.{name}", self.baseline.workload.get(name))
        return float(value) if isinstance(value, (int, float)) else None

    @property
    def worth(self) -> float:
        """Smallest gain to propose: worth having, and large enough to be detected."""
        return max(self.least, self.baseline.minimum_detectable_effect)

    @property
    def least(self) -> float:
        """The endpoint's minimum effect, a fraction."""
        return float(self.endpoint.get("minimum_effect", 0.05))

    def tried(self, change: Change) -> bool:
        """A hypothesis of this campaign has set just this."""
        return any(h.hypothesis.intervention.set == change for h in self.view.hypotheses)


def read(messages: Sequence[BaseMessage]) -> Facts | list[str]:
    """The facts in the conversation, or the tools whose answers are still missing."""
    from langchain_core.messages import AIMessage, ToolMessage

    asked = {c["id"]: c for m in messages if isinstance(m, AIMessage) for c in m.tool_calls}
    answers: dict[str, Any] = {}
    simulated: dict[bytes, SimulatedEffect | str] = {}
    for message in messages:
        if not isinstance(message, ToolMessage) or message.tool_call_id not in asked:
            continue
        call = asked[message.tool_call_id]
        if call["name"] == "experiment_simulate":
            ok = message.status != "error"
            simulated[canonical(call["args"].get("set", {}))] = SimulatedEffect.model_validate(_content(message)) if ok else str(message.content)
        elif message.status == "error":
            raise LookupError(f"{call['name']} gave no answer: {str(message.content)[:200]}")
        else:
            answers[call["name"]] = _content(message)
    missing = [name for name in ("telemetry_evidence", "ledger_overview", "config_endpoint", "config_knobs") if name not in answers]
    if missing:
        return missing
    return Facts(
        baseline=BaselineView.model_validate(answers["telemetry_evidence"]),
        view=CampaignView.model_validate(answers["ledger_overview"]),
        endpoint=answers["config_endpoint"],
        knobs=tuple(answers["config_knobs"]["knobs"]),
        simulated=simulated,
    )


def _content(message: BaseMessage) -> Any:
    value = json.loads(str(message.content))
    return value["result"] if isinstance(value, dict) and set(value) == {"result"} else value
