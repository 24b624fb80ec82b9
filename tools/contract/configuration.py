"""What exactly runs in one arm."""

from __future__ import annotations

from .base import Contract, Scalar, digest
from .endpoint import EngineKind
from .hypothesis import Intervention


class Configuration(Contract):
    """Engine arguments, environment and patches of one arm. Equal digests mean equal arms."""

    kind: EngineKind
    args: dict[str, Scalar] = {}
    env: dict[str, str] = {}
    patches: tuple[str, ...] = ()

    def digest(self) -> str:
        return digest(self)

    def apply(self, change: Intervention) -> Configuration:
        """This configuration with the intervention made."""
        args = {name: value for name, value in self.args.items() if name not in change.unset} | change.set
        return Configuration(kind=self.kind, args=args, env=self.env | change.env, patches=self.patches + change.patches)

    def difference(self, other: Configuration) -> dict[str, tuple[Scalar | None, Scalar | None]]:
        """Arguments and variables that differ: name -> (here, there); None where not set."""
        here, there = {**self.args, **{f"env {k}": v for k, v in self.env.items()}}, {**other.args, **{f"env {k}": v for k, v in other.env.items()}}
        return {name: (here.get(name), there.get(name)) for name in sorted({*here, *there}) if here.get(name) != there.get(name)}
