"""What an entry of each kind says."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from ..contract.base import Contract, Scalar, digest
from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint
from ..contract.errors import BadInput, explain
from ..contract.experiment import ExperimentPlan
from ..contract.hypothesis import Hypothesis
from ..contract.run import ClientReport, Failure, RunKind, RunMeasurement, ServerReport
from ..contract.series import Series
from ..contract.verdict import NoiseFloor, Verdict
from .owner import Owner

Artifact = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Thread = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
"""Name of a campaign; also a folder's name."""
Nature = Literal["genuine", "sham"]
"""What a sealed hypothesis was; told at the campaign's closing."""


class CampaignOpened(Contract):
    campaign: Thread
    endpoint: Endpoint
    alpha: float
    seed: int
    versions: dict[str, str]
    """Of what measures and judges: servewright, python, and others by name."""


class SeriesOpened(Contract):
    campaign: Thread
    series: Series


class FloorRecorded(Contract):
    campaign: Thread
    series: str
    floor: NoiseFloor
    runs: tuple[str, ...]
    """Floor runs whose capacities it was computed from, in order."""
    pooled: tuple[tuple[str, ...], ...] = ()
    """Baseline runs of earlier experiments, one group an experiment."""
    left_out: dict[str, str] = {}
    """Floor runs that could not be used, and why."""


class HypothesisRecorded(Contract):
    campaign: Thread
    hypothesis: Hypothesis
    lossless: bool
    """The catalogue's word."""
    seal: str = Field(pattern=r"^[0-9a-f]{64}$")
    """Commitment to its nature (see `seals`). Every hypothesis has one, so that shams don't stand out."""

    def id(self) -> str:
        return "h-" + digest([self.campaign, self.hypothesis.model_dump(mode="json")])[:12]


class RunReserved(Contract):
    """Who the run is. (campaign, experiment, kind, arm, pair, attempt) is its key; outside experiments the series is part of it."""

    campaign: Thread
    experiment: str | None
    kind: RunKind
    arm: Literal["baseline", "candidate"]
    pair: int = Field(ge=0)
    attempt: int = Field(ge=0)
    series: str | None
    configuration: Configuration
    launches: bool
    """False for a run in virtual time: it starts no server and costs no launch."""
    owner: Owner

    def slot(self) -> tuple[str | int | None, ...]:
        """The key without the attempt."""
        return (self.campaign, self.experiment, self.kind, self.arm, self.pair, None if self.experiment else self.series)

    def id(self) -> str:
        return "r-" + digest([*self.slot(), self.attempt])[:12]


class RunStarted(Contract):
    campaign: Thread
    run: str
    owner: Owner


class RunFinished(Contract):
    campaign: Thread
    run: str
    rows: Artifact | None
    log: Artifact | None
    probe: Artifact | None
    """A `Probe` as canonical JSON."""
    server: ServerReport | None
    client: ClientReport | None
    failure: Failure | None
    wall_s: float
    replay_wall_s: float
    measurement: RunMeasurement | None
    """As computed from the rows when the run ended; `verify` computes it again. None for a failed run and for one without a series."""


class RunAborted(Contract):
    campaign: Thread
    run: str
    why: str
    wall_s: float = Field(ge=0)
    """As far as its heartbeats tell."""
    replay_wall_s: float = Field(default=0, ge=0)


class VerdictRecorded(Contract):
    campaign: Thread
    experiment: str
    verdict: Verdict
    closed: bool
    """Judged although the rule would have liked another pair."""
    runs: tuple[str, ...]
    """All finished runs of the experiment, and then the floor runs that parity was judged against."""
    evidence: str
    """Digest over the plan's id and the hashes of those runs' entries."""


class StackRecorded(Contract):
    campaign: Thread
    accepted: tuple[str, ...]
    """Ids of the hypotheses, in the order in which they joined."""
    configuration: Configuration


class Approval(Contract):
    campaign: Thread
    subject: str
    """Id of a hypothesis (may it be tried), or that with `:ship` (may it join the stack)."""
    answer: bool
    author: str
    """Who said so: a person's name, or `policy:<file>`."""
    packet: Artifact | None = None
    """What was shown when asking."""


class Opening(Contract):
    hypothesis: str
    nature: Nature
    salt: str


class Summary(Contract):
    """What the driver says at the end; figures come from runs and verdicts, not from here."""

    result: str = ""
    """One sentence; the report makes its own where this is empty."""
    stopped: str = ""
    """Why the campaign ended: nothing left to try, budget spent, stopped by the user, an engine's failure."""
    command: tuple[str, ...] = ()
    """Argument list of the winning server (the baseline's when nothing was kept)."""
    families: dict[str, str] = {}
    """Lever family -> its fate in words: tried, ruled out by which measurement, put off and why."""
    extra: dict[str, Scalar] = {}


class CampaignClosed(Contract):
    campaign: Thread
    openings: tuple[Opening, ...]
    summary: Summary
    entries: dict[str, int]
    """Kind -> how many entries the campaign had."""


class Note(Contract):
    campaign: Thread | None = None
    author: str
    text: str
    data: dict[str, Any] = {}


KINDS: dict[str, type[Contract]] = {
    "campaign_opened": CampaignOpened,
    "series_opened": SeriesOpened,
    "floor": FloorRecorded,
    "hypothesis": HypothesisRecorded,
    "experiment": ExperimentPlan,
    "run_reserved": RunReserved,
    "run_started": RunStarted,
    "run_finished": RunFinished,
    "run_aborted": RunAborted,
    "verdict": VerdictRecorded,
    "stack": StackRecorded,
    "approval": Approval,
    "campaign_closed": CampaignClosed,
    "note": Note,
}
OPEN_KINDS = frozenset({"note"})
"""Kinds that anybody may append; all others have rules and a function of this package that keeps them."""


def parse(kind: str, body: dict[str, Any] | Contract) -> Contract:
    """The body as its type. Raises `BadInput` for an unknown kind or a body that doesn't fit."""
    if kind not in KINDS:
        raise BadInput("ledger kind", kind, f"one of {', '.join(KINDS)}")
    try:
        return KINDS[kind].model_validate(body.model_dump(mode="json") if isinstance(body, Contract) else body)
    except ValidationError as error:
        raise explain(error, f"ledger entry ({kind})") from None
