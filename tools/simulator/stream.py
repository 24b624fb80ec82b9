"""One answer on its way to a client: the tokens that are due become server-sent events, or one JSON body at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import count
from typing import Any

import orjson

from .request import Request
from .tokens import CHUNK, TOKEN_BYTES, Answer, word

_MARK = b"\x01" * TOKEN_BYTES
_NUMBERS = count(1)


class AnswerStream:
    """Renders and sends. `write` takes bytes for the connection; `done` is called after the last of them."""

    __slots__ = ("_answer", "_chat", "_done", "_end", "_extra", "_head", "_id", "_interval", "_model", "_one", "_sent", "_size", "_stream", "_tail", "_text", "_usage", "_words", "_write", "natural", "request")

    def __init__(
        self,
        request: Request,
        answer: Answer,
        *,
        chat: bool,
        stream: bool,
        usage: bool,
        natural: bool,
        model: str,
        interval: int,
        write: Callable[[bytes], object],
        done: Callable[[], None],
        extra: dict[str, Any] | None = None,
    ) -> None:
        self.request, self.natural = request, natural  # natural: the model ends by itself, not by max_tokens
        self._answer, self._chat, self._stream, self._usage = answer, chat, stream, usage
        self._model, self._interval, self._write, self._done = model, interval, write, done
        self._extra = extra or {}
        self._id = f"{'chatcmpl' if chat else 'cmpl'}-{next(_NUMBERS)}"
        self._sent = 0
        self._words: list[bytes] = []
        self._text: list[bytes] = []
        if stream:
            event = b"data: " + self._event(self._choice(_MARK.decode(), None)) + b"\n\n"
            self._head, self._tail = event.split(orjson.dumps(_MARK.decode())[1:-1])
            self._size = len(self._head) + len(self._tail)
            self._one = b"%x\r\n%b" % (self._size + TOKEN_BYTES, self._head)  # the chunk of an event with one token, up to the token
            self._end = self._tail + b"\r\n"

    def tokens(self, count: int, finished: bool) -> None:
        """See `clocked.Listener`."""
        sent = self._sent
        if not finished and (count <= sent or (sent and count - sent < self._interval)):
            return
        text = self._next() if count - sent == 1 else b"".join([self._next(place) for place in range(sent, count)])
        self._sent = count
        if finished:
            self._finish(text, count)
        elif not self._stream:
            self._text.append(text)
        elif not sent:
            self._write(self._opening() + self._one + text + self._end)
        elif len(text) == TOKEN_BYTES:
            self._write(self._one + text + self._end)
        else:
            self._write(b"%x\r\n%b%b%b" % (self._size + len(text), self._head, text, self._end))

    def _next(self, place: int | None = None) -> bytes:
        """Text of the token at `place`, by default the first that isn't sent. Places must be asked for in order."""
        place = self._sent if place is None else place
        if not place % CHUNK:
            self._words = [word(token) for token in self._answer.chunk(place // CHUNK)]
        return self._words[place % CHUNK]

    def _opening(self) -> bytes:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
        if not self._chat:
            return head
        return head + _chunk(b"data: " + self._event({"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}) + b"\n\n")

    def _finish(self, text: bytes, count: int) -> None:
        reason = "stop" if self.natural else "length"
        request = self.request
        usage = {
            "prompt_tokens": request.prompt,
            "total_tokens": request.prompt + count,
            "completion_tokens": count,
            "prompt_tokens_details": {"cached_tokens": max(0, request.cached)},
        }
        if not self._stream:
            self._text.append(text)
            whole = b"".join(self._text).decode()
            choice = {"index": 0, "logprobs": None, "finish_reason": reason, "stop_reason": None, **self._extra}
            choice |= {"message": {"role": "assistant", "content": whole}} if self._chat else {"text": whole}
            body = orjson.dumps({**self._frame("chat.completion" if self._chat else "text_completion"), "choices": [choice], "usage": usage})
            self._write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        else:
            parts = [self._opening()] if count == len(text) // TOKEN_BYTES else []
            parts.append(_chunk(b"data: " + self._event(self._choice(text.decode(), reason)) + b"\n\n"))
            end = b"data: [DONE]\n\n"
            if self._usage:
                end = b"data: " + orjson.dumps({**self._frame(self._kind()), "choices": [], "usage": usage}) + b"\n\n" + end
            parts += [_chunk(end), b"0\r\n\r\n"]
            self._write(b"".join(parts))
        self._done()

    def _kind(self) -> str:
        return "chat.completion.chunk" if self._chat else "text_completion"

    def _frame(self, kind: str) -> dict[str, Any]:
        return {"id": self._id, "object": kind, "created": int(time.time()), "model": self._model}

    def _choice(self, text: str, reason: str | None) -> dict[str, Any]:
        return {"index": 0, **({"delta": {"content": text}} if self._chat else {"text": text}), "logprobs": None, "finish_reason": reason}

    def _event(self, choice: dict[str, Any]) -> bytes:
        return orjson.dumps({**self._frame(self._kind()), "choices": [choice]})


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
