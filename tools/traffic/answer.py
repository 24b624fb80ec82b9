"""One request and what came back for it: stamps, counts, and how it ended."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import orjson
from orjson import loads

from ..contract.rows import Status

DONE = b"[DONE]"
_WORD = re.compile(r"^[A-Za-z0-9_.-]{1,40}$")


class Answer:
    """Filled in while the stream arrives. Times are of `time.perf_counter` (wall seconds)."""

    __slots__ = ("cached_tokens", "chunks", "done", "due", "end", "error", "finish", "first", "http", "last", "output_tokens", "prompt_tokens", "sent", "sha", "status", "text")

    def __init__(self, due: float) -> None:
        self.due = due
        self.sent: float | None = None
        """When the client turned to it: wrote it, or began to connect for it."""
        self.first: float | None = None
        self.last: float | None = None
        self.end: float | None = None
        self.status: Status | None = None
        self.http: int | None = None
        self.finish: str | None = None
        self.prompt_tokens: int | None = None
        self.cached_tokens: int | None = None
        self.output_tokens: int | None = None
        self.chunks = 0
        self.sha: bytes | None = None
        self.text: list[str] | None = []
        self.error: str | None = None
        self.done = False

    def take(self, payload: bytes, now: float) -> None:
        """Read one event that arrived at `now`. Role-only, empty and usage-only events don't count as content. Raises on what makes no sense."""
        if payload == DONE:
            self.done = True
            return
        event = loads(payload)
        choices = event.get("choices")
        for choice in choices or ():
            delta = choice.get("delta")
            text = choice.get("text") if delta is None else delta.get("content")
            if not text and delta:
                text = _beside(delta)
            if text:
                if self.first is None:
                    self.first = now
                self.last = now
                self.chunks += 1
                self.text.append(text)  # pyright: ignore[reportOptionalMemberAccess]
            if reason := choice.get("finish_reason"):
                self.finish = reason
        if usage := event.get("usage"):
            self.prompt_tokens = usage.get("prompt_tokens")
            self.output_tokens = usage.get("completion_tokens")
            details = usage.get("prompt_tokens_details")
            if details:
                self.cached_tokens = details.get("cached_tokens")
        elif not choices and ("error" in event or event.get("object") == "error"):
            self.error = "error in the stream: " + reason_of(event)

    def close(self, status: Status, now: float, error: str | None = None) -> None:
        """The end, of whatever kind. The text is reduced to its hash."""
        self.status, self.end = status, now
        if error is not None:
            self.error = error
        if self.text:
            self.sha = hashlib.sha256("".join(self.text).encode("utf-8", "surrogatepass")).digest()[:8]
        self.text = None

    def finished(self, now: float) -> None:
        """The response's body is complete: find out what it amounts to."""
        if self.http != 200:
            self.close("refused" if self.http in (429, 503) else "http_error", now, self.error or f"HTTP {self.http}")
        elif self.error is not None:
            self.close("stream_error", now)
        elif self.done or self.finish is not None:
            self.close("ok", now)
        else:
            self.close("stream_error", now, "the stream ended without [DONE] or a finish reason" if self.chunks else "no event stream in the response")


def _beside(delta: dict[str, Any]) -> str | None:
    """Text of a reasoning or tool-call delta."""
    text = delta.get("reasoning_content") or delta.get("reasoning")
    if not text and (calls := delta.get("tool_calls")):
        text = orjson.dumps(calls).decode()
    return text or delta.get("refusal")


def reason_of(body: Any) -> str:
    """Type or code of an error object, never its message: that may quote the traffic."""
    error = body.get("error", body) if isinstance(body, dict) else None
    if isinstance(error, dict):
        for key in ("type", "code"):
            word = str(error.get(key) or "")
            if _WORD.match(word):
                return word
    return "without a type"
