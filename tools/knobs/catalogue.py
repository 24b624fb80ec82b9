"""All arguments of one engine and version: the engine's own schema, with what we add."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from ..contract.base import Scalar
from ..contract.configuration import Configuration
from ..contract.endpoint import EngineKind, Family
from ..contract.errors import BadInput
from ..contract.hypothesis import Check, Intervention
from .types import Knob
from .values import coerce, holds

Rule = Callable[[dict[str, Scalar], dict[str, Scalar | None]], str | None]
"""(arguments, defaults) -> what is wrong with them together, or None."""


class Catalogue:
    """`knobs` and `variables` by name; `gone`: name -> what became of it."""

    def __init__(
        self, kind: EngineKind, version: str, knobs: Mapping[str, Knob], *, variables: Mapping[str, Knob], gone: Mapping[str, str], rules: tuple[Rule, ...] = ()
    ) -> None:
        self.kind, self.version = kind, version
        self.knobs, self.variables, self.gone, self.rules = dict(knobs), dict(variables), dict(gone), rules
        self._defaults = {name: knob.default for name, knob in self.knobs.items()}

    def knob(self, name: str, field: str = "argument") -> Knob:
        """The knob of that name. Raises `BadInput` that says what became of it, or names the nearest."""
        if name in self.knobs:
            return self.knobs[name]
        plain = name.lstrip("-").replace("-", "_")
        if plain != name and plain in self.knobs:
            raise BadInput(field, name, f"the name with underscores: {plain}")
        if plain in self.gone:
            raise BadInput(field, name, f"a flag of {self.kind} {self.version}: {self.gone[plain]}")
        near = get_close_matches(plain, self.knobs, n=3, cutoff=0.5)
        raise BadInput(field, name, f"a flag of {self.kind} {self.version}" + (f"; nearest: {', '.join(near)}" if near else ""))

    def variable(self, name: str, field: str = "env") -> Knob:
        """The environment variable of that name, if it is on the allow-list. Raises `BadInput`."""
        if name in self.variables:
            return self.variables[name]
        near = get_close_matches(name, self.variables, n=1)
        allowed = f"nearest: {near[0]}" if near else f"allowed: {', '.join(sorted(self.variables)) or 'none'}"
        raise BadInput(field, name, f"an environment variable that may steer {self.kind} ({allowed})")

    def check(self, configuration: Configuration, field: str = "engine.args") -> Configuration:
        """The configuration with every value in its type. Raises `BadInput` for unknown flags, bad values and combinations that the engine would refuse."""
        if configuration.kind != self.kind:
            raise BadInput(field, configuration.kind, f"a configuration of engine {self.kind}")
        args: dict[str, Scalar] = {}
        for name, value in configuration.args.items():
            knob = self.knob(name, field)
            if knob.access == "reserved":
                raise BadInput(f"{field}.{name}", value, f"no {name} here: Servewright sets it itself")
            args[name] = coerce(knob, value, f"{field}.{name}")
        side = field.rpartition(".")[0]
        env = {name: str(coerce(self.variable(name, f"{side or 'engine'}.env"), value, f"{side or 'engine'}.env.{name}")) for name, value in configuration.env.items()}
        self._together(args, field)
        return configuration.model_copy(update={"args": args, "env": env})

    def check_change(self, change: Intervention, field: str = "intervention") -> Intervention:
        """An intervention fit to be tried: known, tunable, right types. Raises `BadInput`. Combinations are checked once it is applied (`check`)."""
        if change.patches:
            raise BadInput(f"{field}.patches", list(change.patches), "none: this version has no sandbox in which changed source could run")
        for name in (*change.set, *change.unset):
            if self.knob(name, f"{field}.set").access != "tunable":
                raise BadInput(f"{field}.{name}", change.set.get(name, "(unset)"), f"a flag that may be tuned; {name} is the user's to set, in the endpoint file")
        for name in change.env:
            self.variable(name, f"{field}.env")
        return change.model_copy(update={"set": {name: coerce(self.knobs[name], value, f"{field}.set.{name}") for name, value in change.set.items()}})

    def lossless(self, change: Intervention) -> bool:
        """True only if every part is known to leave outputs as they are. Patches never are."""
        return not change.patches and all(knob.lossless for knob in self._touched(change))

    def families(self, change: Intervention) -> frozenset[Family]:
        touched: set[Family] = {knob.family for knob in self._touched(change)}
        if change.patches:
            touched.add("source")
        return frozenset(touched)

    def activation(self, change: Intervention) -> tuple[Check, ...]:
        """Proof that the change took effect: the running server reports each argument as set (as its default, where it was taken away and one is known)."""
        wanted = {name: coerce(self.knob(name), value, name) for name, value in change.set.items()}
        wanted |= {name: default for name in change.unset if (default := self.knob(name).default) is not None}
        return tuple(Check(observable=f"config.{name}", op="==", value=value) for name, value in sorted(wanted.items()))

    def argv(self, args: Mapping[str, Scalar]) -> list[str]:
        """Checked arguments as command-line arguments, in a fixed order."""
        return [part for name in sorted(args) for part in self.knobs[name].arguments(args[name])]

    def _touched(self, change: Intervention) -> list[Knob]:
        return [*(self.knob(name) for name in (*change.set, *change.unset)), *(self.variable(name) for name in change.env)]

    def _together(self, args: dict[str, Scalar], field: str) -> None:
        for name, value in args.items():
            knob = self.knobs[name]
            if value is False:
                continue
            for condition in knob.needs:
                if holds(condition, args, self._defaults) is False:
                    raise BadInput(f"{field}.{name}", value, f"{condition} beside {name}")
            for condition in knob.conflicts:
                if condition.partition("=")[0] in args and holds(condition, args, self._defaults):
                    raise BadInput(f"{field}.{name}", value, f"no {condition} beside {name}")
        for rule in self.rules:
            if problem := rule(args, self._defaults):
                raise BadInput(field, {name: args[name] for name in sorted(args)}, problem)


def catalogue(kind: EngineKind, schema: dict[str, Any] | None = None) -> Catalogue:
    """The catalogue of an engine. `schema`: the installed engine's own argument schema; without it the one we ship for the version we know."""
    if kind == "sim":
        from .sim import sim_catalogue

        return sim_catalogue()
    if kind == "vllm":
        from .vllm import vllm_catalogue

        return vllm_catalogue(schema)
    raise BadInput("engine.kind", kind, "sim or vllm: this version has no catalogue for it")
