"""Explanation, intervention, prediction, falsification: the four parts that every investigator hands back."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from .base import Contract, Scalar, digest
from .endpoint import Family
from .errors import BadInput
from .observables import resolve

Arm = Literal["baseline", "candidate", "ratio", "difference"]
"""baseline, candidate: that arm's runs; ratio: candidate / baseline, pair by pair; difference: candidate - baseline, pair by pair."""
Statistic = Literal["median", "mean", "min", "max"]
"""Over the confirmation runs of the experiment."""
Op = Literal["<", "<=", ">", ">=", "==", "!="]


def _registered(name: str) -> str:
    try:
        resolve(name)
    except BadInput as error:
        raise ValueError(str(error)) from None
    return name


ObservableName = Annotated[str, AfterValidator(_registered)]


class Check(Contract):
    """A statement about measured figures that code can find true or false: `statistic(observable of arm) op value`."""

    observable: ObservableName
    statistic: Statistic = "median"
    arm: Arm = "candidate"
    op: Op
    value: Scalar
    tolerance: float = Field(default=0.0, ge=0)
    """Widens the bound of an order check, or the match of == and !=, by this much (in the observable's unit)."""

    @model_validator(mode="after")
    def _comparable(self) -> Check:
        is_number = isinstance(self.value, (int, float)) and not isinstance(self.value, bool)
        if not is_number and (self.op not in ("==", "!=") or self.arm not in ("baseline", "candidate")):
            raise ValueError(f"value {self.value!r} is not a number: use op == or != on arm baseline or candidate")
        if not is_number and not self.observable.startswith("config."):
            raise ValueError(f"value {self.value!r} is not a number, but {self.observable} is one")
        return self

    def __str__(self) -> str:
        value = f"{self.value:g}" if isinstance(self.value, float) else str(self.value)
        return f"{self.statistic}({self.observable}, {self.arm}) {self.op} {value}" + (f" ± {self.tolerance:g}" if self.tolerance else "")


class Prediction(Contract):
    """What will be seen if the explanation is right. `low`, `high`: fractions of change, 0.10 = +10 %."""

    observable: ObservableName = "capacity_rps_per_gpu"
    direction: Literal["higher", "lower"] = "higher"
    low: float = Field(gt=-1)
    high: float = Field(gt=-1)

    @model_validator(mode="after")
    def _ordered(self) -> Prediction:
        if self.high < self.low:
            raise ValueError(f"high ({self.high}) must not be below low ({self.low})")
        return self


class Intervention(Contract):
    """What is changed: engine arguments and environment now; source patches by the digest of the stored diff."""

    set: dict[str, Scalar] = {}
    """Engine arguments to set, by flag name with underscores."""
    unset: tuple[str, ...] = ()
    """Engine arguments to take away."""
    env: dict[str, str] = {}
    patches: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _changes_something(self) -> Intervention:
        if not (self.set or self.unset or self.env or self.patches):
            raise ValueError("an intervention must change something")
        return self


class Hypothesis(Contract):
    """One idea, testable. `lossless` is the claim; the catalogue has the last word on it."""

    family: Family
    title: str = Field(min_length=3, max_length=120)
    explanation: str = Field(min_length=20, max_length=4000)
    """The mechanism, and the measured evidence for it."""
    intervention: Intervention
    prediction: Prediction
    falsifiers: tuple[Check, ...] = Field(min_length=1, max_length=12)
    """Each is a way to be wrong: the hypothesis is refuted when ANY of these checks is true of the confirmation runs."""
    activation: tuple[Check, ...] = Field(min_length=1, max_length=12)
    """Evidence that the change took effect in the running server: ALL must be true, or there is no verdict on the idea."""
    lossless: bool = True
    minimum_effect: float | None = Field(default=None, gt=0, lt=10)
    """Overrides the endpoint's where a smaller or larger gain matters."""
    proposer: str = Field(default="user", max_length=80)
    """Who proposed it: user, playbook:<rule>, model:<provider:name>, search."""

    @model_validator(mode="after")
    def _falsifiable(self) -> Hypothesis:
        if not any(check.arm != "baseline" for check in self.falsifiers):
            raise ValueError("falsifiers: at least one must look at the candidate (arm candidate, ratio or difference)")
        return self

    def digest(self) -> str:
        return digest(self)
