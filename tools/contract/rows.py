"""One row a request: the raw measurement that everything else is computed from."""

from __future__ import annotations

from typing import Literal

Status = Literal["ok", "refused", "http_error", "timeout", "connection_lost", "stream_error", "unfinished", "not_sent"]
"""ok: the answer came to its end; refused: 429 or 503; http_error: other status; timeout: its own limit; connection_lost: at connecting or mid-stream;
stream_error: an error inside the stream or a stream that makes no sense; unfinished: still open when the drain ended; not_sent: the client never got to it."""

ROW_SCHEMA: dict[str, str] = {
    "rate_index": "Int16",  # index in the series' ladder
    "offered_rps": "Float64",  # of that ladder step, requests per server second
    "phase": "String",  # "warmup" or "measure", by scheduled time
    "request": "Int32",  # index in the workload
    "scheduled_s": "Float64",  # server seconds since the step's start
    "sent_s": "Float64",
    "first_s": "Float64",  # first non-empty content, reasoning or tool-call delta; null when none came
    "last_s": "Float64",  # last token
    "end_s": "Float64",  # end of the response, or of the attempt
    "status": "String",
    "http_status": "Int16",  # null when no response came
    "finish_reason": "String",
    "prompt_tokens": "Int32",  # as the server's usage says; null when it doesn't
    "cached_tokens": "Int32",
    "output_tokens": "Int32",  # as the server's usage says; null when it doesn't
    "expected_prompt_tokens": "Int32",  # as the workload says; null when unknown
    "expected_output_tokens": "Int32",
    "chunks": "Int32",  # stream events with content
    "text_sha": "String",  # first 16 hex digits of SHA-256 over the answer's text
    "error": "String",  # short reason, never text of the traffic
}
"""Column -> polars dtype name. All times are in server seconds (wall seconds times the clock)."""
