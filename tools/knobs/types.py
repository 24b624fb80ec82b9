"""One engine argument, and what we know of it."""

from __future__ import annotations

from typing import Literal

from ..contract.base import Contract, Scalar
from ..contract.endpoint import Family
from ..contract.errors import FailureKind

KnobKind = Literal["int", "float", "bool", "str", "choice"]
Access = Literal["tunable", "user", "reserved"]
"""tunable: an intervention may change it; user: only the endpoint file may set it (it loads code, opens access, or says what the endpoint is);
reserved: Servewright sets it itself."""


class Knob(Contract):
    name: str
    """Flag name with underscores, as in endpoint files; for an environment variable its own name."""
    kind: KnobKind
    choices: tuple[str, ...] = ()
    default: Scalar | None = None
    """None: the engine decides when it starts, or has no default."""
    minimum: float | None = None
    maximum: float | None = None
    family: Family
    lossless: bool
    """False: outputs may change, or we can't tell."""
    access: Access = "tunable"
    needs: tuple[str, ...] = ()
    """What else must hold where this is set (a switch: where it is on): `other` (set, or on) or `other=value`."""
    conflicts: tuple[str, ...] = ()
    """What must not hold beside it, in the same form."""
    failures: tuple[FailureKind, ...] = ()
    """What it tends to cause when set badly."""
    no_effect: str = ""
    """Why setting it changes nothing in this version; empty: it has an effect."""
    option: str = ""
    """On the command line; empty: `--name-with-dashes`."""
    off: str = ""
    """Of a switch: what turns it off; empty: leaving it out does."""
    many: bool = False
    """Takes several values: written in one string with spaces between."""
    meaning: str = ""

    def arguments(self, value: Scalar) -> list[str]:
        """The command-line arguments that set it. `value` has been through `Catalogue.check`."""
        option = self.option or "--" + self.name.replace("_", "-")
        if self.kind == "bool":
            return [option] if value else [self.off] if self.off else []
        if self.many:
            return [option, *str(value).split()]
        return [f"{option}={value}"]
