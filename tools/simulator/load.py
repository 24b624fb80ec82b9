"""What goes into a simulated replay, and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .request import block_hashes


class Prompt:
    """A prompt, its block hashes worked out once however often it is simulated. `tokens`: ids, or None where only `hashes` and `length` are known."""

    __slots__ = ("_hashes", "length", "tokens")

    def __init__(self, tokens: Sequence[int] | None, length: int | None = None, hashes: dict[int, list[int]] | None = None) -> None:
        self.tokens = tokens
        self.length = length if length is not None else len(tokens or ())
        self._hashes = hashes or {}

    def hashes(self, block: int) -> list[int]:
        """Of the full blocks, for a block size."""
        known = self._hashes.get(block)
        if known is None:
            known = self._hashes[block] = block_hashes(self.tokens or (), block)
        return known


class SimRequest:
    """Arrives `at_s` seconds after the replay's start, and generates exactly `output_tokens`. A prompt that is simulated often should be one `Prompt`."""

    __slots__ = ("at_s", "output_tokens", "prompt")

    def __init__(self, at_s: float, prompt: Prompt | Sequence[int], output_tokens: int) -> None:
        self.at_s, self.output_tokens = at_s, output_tokens
        self.prompt = prompt if isinstance(prompt, Prompt) else Prompt(prompt)


@dataclass(slots=True)
class Outcome:
    """What became of one request; seconds since the replay's start, None where it didn't come to it."""

    first_s: float | None
    last_s: float | None
    prompt_tokens: int
    cached_tokens: int | None
    output_tokens: int
    status: str
    """ok, http_error (longer than max_model_len: the server would answer 400) or unfinished, as in the rows."""
    preemptions: int
