"""A workload: a trace turned into the very requests that a replay sends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from ..contract.endpoint import WorkloadSpec
from ..contract.errors import BadInput
from .describe import describe
from .prompts import TokenBodies, TokenRange
from .trace import Trace, read_trace

Window = Literal["explore", "held_out"]
"""explore: the trace's first part; held_out: its last, which only confirmation uses."""


@dataclass(frozen=True)
class Workload:
    """Requests in order of arrival; all arrays of length n.

    `expected_*_tokens` is -1 where unknown. `exact[i]`: the engine is told to answer with exactly the expected tokens (ignore_eos), so a shorter answer is a fault.
    `bodies[i]`: the JSON body from its second key on: the replay writes `{"model": ...,` before it.
    """

    at_s: NDArray[np.float64]
    paths: tuple[str, ...]
    path: NDArray[np.uint8]
    """Index into `paths`."""
    expected_prompt_tokens: NDArray[np.int32]
    expected_output_tokens: NDArray[np.int32]
    exact: NDArray[np.bool_]
    session: NDArray[np.int32]
    """Equal numbers are one conversation; -1 is none."""
    held_out: float
    """Share of the requests that the window `held_out` takes from the end; 0: the other window is all."""
    tokens: TokenRange | None
    """Where prompts are token ids that can be made afresh; None where they are what was logged."""
    about: dict[str, Any]
    """What it was made from, and its figures."""
    bodies: Sequence[bytes | memoryview]

    @property
    def requests(self) -> int:
        return len(self.at_s)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the frozen file."""
        from .frozen import content_digest

        return content_digest(self)

    def describe(self) -> dict[str, Any]:
        return {**self.about, "explore_requests": len(self.window("explore")), "held_out_requests": len(self.window("held_out"))}

    def window(self, name: Window) -> range:
        """Indices of the requests of a window."""
        if self.held_out == 0:
            return range(self.requests) if name == "explore" else range(0)
        split = min(max(self.requests - round(self.requests * self.held_out), 1), self.requests - 1)
        return range(split) if name == "explore" else range(split, self.requests)

    def body(self, index: int) -> dict[str, Any]:
        """The request body as an object, without its model."""
        return orjson.loads(b"{" + bytes(self.bodies[index]))

    def prompt_ids(self, index: int) -> NDArray[np.int64] | None:
        """Token ids of a prompt that is made of ids, shape (tokens,); None for text."""
        prompt = self.body(index).get("prompt")
        return np.array(prompt, np.int64) if isinstance(prompt, list) and prompt and isinstance(prompt[0], int) else None


def load_workload(spec: WorkloadSpec, vocab: int | None = None) -> Workload:
    """Read the trace and make its requests. Traces of lengths become token-id prompts within `vocab`. Raises `BadInput`."""
    trace = read_trace(Path(spec.trace), spec.format)
    if trace.requests < 2 or trace.at_s[0] == trace.at_s[-1]:
        raise BadInput("workload.trace", spec.trace, "a trace with at least two requests at different times")
    return _from_lengths(trace, spec, vocab) if trace.blocks is not None else _from_bodies(trace, spec)


def _from_lengths(trace: Trace, spec: WorkloadSpec, vocab: int | None) -> Workload:
    assert trace.blocks is not None and trace.block_tokens is not None
    block_tokens = max(1, round(trace.block_tokens * spec.scale_input))
    whole, rest = np.divmod(trace.prompt_tokens, trace.block_tokens)
    prompt = np.maximum(1, whole * block_tokens + np.minimum(np.rint(rest * spec.scale_input).astype(np.int32), block_tokens)).astype(np.int32)
    output = np.maximum(1, np.rint(trace.output_tokens * spec.scale_output)).astype(np.int32)
    kept = _kept(prompt, spec)
    cut = int((output[kept] > spec.max_output_tokens).sum()) if spec.max_output_tokens else 0
    output = np.minimum(output, spec.max_output_tokens or output.max())
    tokens = TokenRange.of(vocab)
    blocks = [trace.blocks[i] for i in kept]
    prompt, output = prompt[kept], output[kept]
    n = len(kept)
    return Workload(
        at_s=trace.at_s[kept],
        paths=(trace.paths[0],),
        path=np.zeros(n, np.uint8),
        expected_prompt_tokens=prompt,
        expected_output_tokens=output,
        exact=np.ones(n, np.bool_),
        session=np.full(n, -1, np.int32),
        held_out=spec.held_out,
        tokens=tokens,
        about=_about(trace, spec, kept, cut) | {"prompt_tokens_mean": round(float(prompt.mean()), 2), "output_tokens_mean": round(float(output.mean()), 2)},
        bodies=TokenBodies(blocks, prompt, output, block_tokens, tokens),
    )


def _from_bodies(trace: Trace, spec: WorkloadSpec) -> Workload:
    assert trace.bodies is not None
    if spec.scale_input != 1 or spec.scale_output != 1:
        raise BadInput("workload.scale_input", spec.scale_input, "1 for traces of logged requests: their text can't be scaled")
    kept = _kept(trace.prompt_tokens, spec)
    bodies, outputs, exact, cut = [], [], [], 0
    for i in kept.tolist():
        body = {key: value for key, value in trace.bodies[i].items() if key not in ("model", "stream", "stream_options")}
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        if spec.max_output_tokens and (limit is None or limit > spec.max_output_tokens):
            body["max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"] = limit = spec.max_output_tokens
            cut += 1
        exact.append(bool(body.get("ignore_eos")) and limit is not None)
        logged = int(trace.output_tokens[i])
        outputs.append(limit if exact[-1] else min(logged, limit or logged))
        bodies.append(orjson.dumps(body | {"stream": True, "stream_options": {"include_usage": True}})[1:])
    names = tuple(sorted(set(trace.paths)))
    numbers = {name: k for k, name in enumerate(dict.fromkeys(s for s in trace.sessions if s is not None))}
    sessions = [trace.sessions[i] for i in kept.tolist()]
    return Workload(
        at_s=trace.at_s[kept],
        paths=names,
        path=np.array([names.index(trace.paths[i]) for i in kept.tolist()], np.uint8),
        expected_prompt_tokens=trace.prompt_tokens[kept],
        expected_output_tokens=np.array(outputs, np.int32),
        exact=np.array(exact, np.bool_),
        session=np.array([-1 if s is None else numbers[s] for s in sessions], np.int32),
        held_out=spec.held_out,
        tokens=None,
        about=_about(trace, spec, kept, cut),
        bodies=bodies,
    )


def _kept(prompt: NDArray[np.int32], spec: WorkloadSpec) -> NDArray[np.int64]:
    kept = np.flatnonzero(prompt <= (spec.max_input_tokens or np.iinfo(np.int32).max))
    if len(kept) < 2:
        raise BadInput("workload.max_input_tokens", spec.max_input_tokens, f"a limit that leaves at least two requests (the shortest prompt has {prompt.min()} tokens)")
    return kept


def _about(trace: Trace, spec: WorkloadSpec, kept: NDArray[np.int64], cut: int) -> dict[str, Any]:
    return {
        "trace": trace.source.name,
        "figures": describe(trace),
        "workload_class": spec.workload_class,
        "scale_input": spec.scale_input,
        "scale_output": spec.scale_output,
        "requests": len(kept),
        "left_out_too_long": trace.requests - len(kept),
        "answers_cut": cut,
    }
