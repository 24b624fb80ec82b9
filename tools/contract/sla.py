"""What a request must keep to count."""

from __future__ import annotations

from pydantic import Field, model_validator

from .base import Contract


class SLA(Contract):
    """Bounds in the server's seconds, and the share of requests that must keep them all."""

    ttft_s: float | None = Field(default=None, gt=0)
    """Time to first token, from the scheduled send time."""
    tpot_s: float | None = Field(default=None, gt=0)
    """Time per output token after the first: (last token - first token) / (output tokens - 1)."""
    e2e_s: float | None = Field(default=None, gt=0)
    """End to end, from the scheduled send time to the last token."""
    attainment: float = Field(default=0.95, gt=0, lt=1)
    """Share of all scheduled requests that must succeed inside the bounds."""

    @model_validator(mode="after")
    def _has_a_bound(self) -> SLA:
        if self.ttft_s is None and self.tpot_s is None and self.e2e_s is None:
            raise ValueError("at least one of ttft_s, tpot_s, e2e_s must be given")
        return self
