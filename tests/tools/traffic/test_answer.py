import hashlib
import json

import pytest

from servewright.tools.traffic.answer import Answer


def read(*events: dict | str, http: int = 200) -> Answer:
    """An answer that took the events at times 1, 2, 3 ... and then ended."""
    answer = Answer(0.0)
    answer.http = http
    for k, event in enumerate(events, 1):
        answer.take(event.encode() if isinstance(event, str) else json.dumps(event).encode(), float(k))
    answer.finished(float(len(events)))
    return answer


def chat(finish: str | None = None, **delta: object) -> dict:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def test_role_only_empty_and_usage_events_are_not_the_first_token() -> None:
    answer = read(chat(role="assistant", content=""), chat(content=""), chat(content="a"), chat("stop", content="b"), {"choices": [], "usage": {"completion_tokens": 2}}, "[DONE]")
    assert (answer.first, answer.last, answer.chunks, answer.output_tokens, answer.status) == (3.0, 4.0, 2, 2, "ok")
    assert answer.sha == hashlib.sha256(b"ab").digest()[:8]


def test_several_tokens_in_a_chunk_count_by_usage_not_by_chunks() -> None:
    answer = read(chat("length", content="five tokens in one chunk"), {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 5}}, "[DONE]")
    assert (answer.chunks, answer.output_tokens, answer.prompt_tokens) == (1, 5, 9)


def test_usage_that_grows_with_every_chunk_ends_with_the_last() -> None:
    events = [{"choices": [{"text": "x", "finish_reason": None}], "usage": {"prompt_tokens": 3, "completion_tokens": k}} for k in (1, 2, 3)]
    assert read(*events, "[DONE]").output_tokens == 3


def test_no_usage_leaves_tokens_unknown() -> None:
    answer = read(chat("stop", content="a b c"), "[DONE]")
    assert (answer.status, answer.output_tokens, answer.cached_tokens) == ("ok", None, None)


@pytest.mark.parametrize("delta", [{"reasoning_content": "hm"}, {"reasoning": "hm"}, {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]}])
def test_reasoning_and_tool_calls_are_content(delta: dict) -> None:
    assert read(chat(role="assistant"), chat("stop", **delta), "[DONE]").first == 2.0


def test_done_missing_is_made_up_by_a_finish_reason_only() -> None:
    assert read(chat("stop", content="a")).status == "ok"
    cut = read(chat(content="a"))
    assert (cut.status, cut.error) == ("stream_error", "the stream ended without [DONE] or a finish reason")


def test_an_error_inside_a_200_stream_is_an_error_and_its_message_is_not_kept() -> None:
    answer = read(chat(content="a"), {"error": {"message": "prompt 'my secret' too long", "type": "InternalServerError", "code": 500}}, "[DONE]")
    assert (answer.status, answer.error) == ("stream_error", "error in the stream: InternalServerError")


def test_statuses_by_http_code() -> None:
    assert [read(http=code).status for code in (429, 503, 400, 500)] == ["refused", "refused", "http_error", "http_error"]


def test_a_200_without_events_makes_no_sense() -> None:
    assert read().status == "stream_error"
