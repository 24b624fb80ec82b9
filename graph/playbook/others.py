"""Families without a rule that proposes something yet: each with the reason that holds for this endpoint."""

from __future__ import annotations

from .draft import Answer, settled
from .facts import Facts


def quantisation(facts: Facts) -> list[Answer]:
    if facts.endpoint["permissions"]["lossy"] == "deny":
        return [settled("quantisation", "not_applicable", "the endpoint's permissions deny lossy changes, and lower precision moves the outputs.")]
    return [
        settled("quantisation", "put_off", "lower precision moves the outputs; without a measurement of quality a gain in speed can't be weighed against it.")
    ]


def parallelism(facts: Facts) -> list[Answer]:
    gpus = facts.endpoint["hardware"]["gpus"]
    if gpus == 1:
        return [settled("parallelism", "not_applicable", "one device serves: there is nothing to split the model over.")]
    return [settled("parallelism", "put_off", f"{gpus} devices serve; layouts need a relaunch of all of them, and no rule weighs their communication yet.")]


def speculative(facts: Facts) -> list[Answer]:
    if not any(knob["tunable"] for knob in facts.knobs if knob["family"] == "speculative"):
        return [settled("speculative", "not_applicable", "this engine and version offers no argument for speculative decoding.")]
    running = facts.baseline.observables.get("running_mean")
    load = (
        f" (about {running:.0f} requests run at once: the larger the batch, the less idle compute there is to draft with)" if isinstance(running, float) else ""
    )
    return [
        settled("speculative", "put_off", f"no drafter for {facts.endpoint['model']} has been given, and its acceptance on this traffic isn't known{load}.")
    ]


def kernels(facts: Facts) -> list[Answer]:
    if facts.arg("enforce_eager") is True:
        return [
            settled(
                "kernels",
                "put_off",
                "enforce_eager is on, so every step pays for its launches; turning graphs on changes start-up and memory, which no rule weighs yet.",
            )
        ]
    return [settled("kernels", "put_off", "no profile of the steps has been taken, so no kernel is known to be slow.")]


def source(facts: Facts) -> list[Answer]:
    if facts.endpoint["permissions"]["source"] == "deny":
        return [settled("source", "not_applicable", "the endpoint's permissions deny changes to the engine's source.")]
    return [settled("source", "put_off", "a change to the engine's source needs a profile that points at code; none has been taken.")]
