"""The project's own trace format: requests as they were sent, with their times.

One JSON object a line: `{"at": seconds, "path": "/v1/chat/completions", "body": {...}, "usage": {...}, "session": "..."}`; `usage` and `session` may be absent.
`body` is an OpenAI-style request body; its `model` and `stream` are the replay's, all else is sent as it stands.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..contract.errors import BadInput
from .lines import Line, json_lines
from .trace import Trace

PATHS = ("/v1/chat/completions", "/v1/completions")
KEYS = {"at", "path", "body", "usage", "session"}


def read(path: Path) -> Trace:
    """Read a native trace; unknown keys are refused, the format being ours."""
    at: list[float] = []
    paths: list[str] = []
    bodies: list[dict[str, Any]] = []
    sessions: list[str | None] = []
    usage: list[tuple[int, int, int]] = []
    for line in json_lines(path):
        unknown = line.value.keys() - KEYS
        if unknown:
            line.refuse("row", sorted(unknown)[0], f"only the keys {', '.join(sorted(KEYS))}")
        at.append(line.time("at", 1.0, at[-1] if at else 0.0))
        where = line.value.get("path", PATHS[0])
        if where not in PATHS:
            line.refuse("path", where, f"one of {', '.join(PATHS)}")
        paths.append(where)
        bodies.append(_body(line, where))
        session = line.value.get("session")
        if session is not None and not isinstance(session, str):
            line.refuse("session", session, "a text, or nothing")
        sessions.append(session)
        usage.append(_usage(line))
    if not at:
        raise BadInput("trace", str(path), "a trace with at least one request")
    lengths = np.array(usage, np.int32)
    return Trace(
        source=path,
        format="native",
        at_s=np.array(at),
        prompt_tokens=lengths[:, 0],
        output_tokens=lengths[:, 1],
        cached_tokens=lengths[:, 2],
        block_tokens=None,
        blocks=None,
        paths=paths,
        bodies=bodies,
        sessions=sessions,
    )


def _body(line: Line, path: str) -> dict[str, Any]:
    body = line.value.get("body", "(missing)")
    key = "messages" if path == PATHS[0] else "prompt"
    if not isinstance(body, dict) or not body.get(key):
        line.refuse("body", body if not isinstance(body, dict) else f"keys {sorted(body)}", f"an object with {key}, as {path} takes it")
    for limit in ("max_tokens", "max_completion_tokens"):
        value = body.get(limit)
        if value is not None and (type(value) is not int or value < 1):
            line.refuse(f"body.{limit}", value, "a whole number of at least 1")
    return body


def _usage(line: Line) -> tuple[int, int, int]:
    """Prompt, output and cached tokens as logged, -1 where not."""
    usage = line.value.get("usage")
    if usage is None:
        return -1, -1, -1
    if not isinstance(usage, dict):
        line.refuse("usage", usage, "an object with prompt_tokens and completion_tokens")
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    lengths = (usage.get("prompt_tokens"), usage.get("completion_tokens"), cached)
    for name, value in zip(("prompt_tokens", "completion_tokens", "prompt_tokens_details.cached_tokens"), lengths, strict=True):
        if value is not None and (type(value) is not int or not 0 <= value < 2**31):
            line.refuse(f"usage.{name}", value, "a whole number of at least 0")
    return lengths[0] if lengths[0] is not None else -1, lengths[1] if lengths[1] is not None else -1, lengths[2] if lengths[2] is not None else -1
