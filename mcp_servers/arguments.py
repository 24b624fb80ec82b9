"""Arguments that several tools take, with their bounds and what a model needs to know of them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, ValidationError

from ..tools.contract.base import Scalar
from ..tools.contract.errors import explain
from ..tools.contract.hypothesis import Intervention

HypothesisId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Id of a hypothesis, as propose or overview gives it.")]
JobId = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Id of a job, as a start tool gives it: 'baseline', 'stack', or a hypothesis's id.")
]
Thread = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$", description="Name of the investigation, chosen at its start; unique in the project.")
]
Flag = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
ToSet = Annotated[
    dict[Flag, Scalar],
    Field(max_length=32, description="Engine arguments to set: flag name with underscores and without dashes -> value, e.g. {\"max_num_seqs\": 64}."),
]
ToUnset = Annotated[tuple[Flag, ...], Field(max_length=32, description="Engine arguments to take away, so that the engine's default holds.")]
ToEnv = Annotated[dict[str, str], Field(max_length=16, description="Environment variables to set; only those on the engine's allow-list are accepted.")]


def intervention(to_set: dict[str, Scalar], to_unset: tuple[str, ...], env: dict[str, str]) -> Intervention:
    """The change that the arguments describe. Raises `BadInput`, for example when they change nothing."""
    try:
        return Intervention(set=to_set, unset=to_unset, env=env)
    except ValidationError as error:
        raise explain(error, "intervention") from None
