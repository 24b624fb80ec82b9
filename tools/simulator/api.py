"""What a client asks for, read from its JSON body and checked."""

from __future__ import annotations

from typing import Any

import orjson

from .config import SimConfig
from .tokens import encode, pack


class Invalid(Exception):
    """Answered as an OpenAI-style JSON error with this status."""

    def __init__(self, message: str, status: int = 400, kind: str = "BadRequestError") -> None:
        super().__init__(message)
        self.status, self.kind = status, kind


class Ask:
    """One request: `prompt` holds packed token ids, `limit` answer tokens at most."""

    __slots__ = ("chat", "ignore_eos", "length", "limit", "minimum", "priority", "prompt", "prompt_logprobs", "stream", "usage")

    def __init__(self, body: bytes, chat: bool, model: str, config: SimConfig) -> None:
        try:
            fields = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise Invalid(f"the body is not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise Invalid("the body must be a JSON object")
        asked = fields.get("model")
        if asked is not None and asked != model:
            raise Invalid(f"The model `{asked}` does not exist.", 404, "NotFoundError")
        self.chat = chat
        for name in ("n", "best_of"):
            if fields.get(name) not in (None, 1):
                raise Invalid(f"{name} must be 1 for the embedded engine")
        for name in ("echo", "logprobs", "suffix"):
            if fields.get(name):
                raise Invalid(f"{name} is not supported by the embedded engine")
        self.prompt = _chat_prompt(fields, config) if chat else _prompt(fields, config)
        self.length = len(self.prompt) // 4
        room = int(config.args["max_model_len"]) - self.length
        if room < 1:
            raise Invalid(f"This model's maximum context length is {config.args['max_model_len']} tokens, but the prompt has {self.length}.")
        limit = _count(fields, "max_completion_tokens") or _count(fields, "max_tokens")
        self.limit = limit or (room if chat else min(16, room))
        if self.limit > room:
            raise Invalid(f"This model's maximum context length is {config.args['max_model_len']} tokens, but {self.length} of prompt and {self.limit} of answer were asked for.")
        self.minimum = _count(fields, "min_tokens") or 0
        if self.minimum > self.limit:
            raise Invalid(f"min_tokens ({self.minimum}) must not be above max_tokens ({self.limit})")
        self.ignore_eos = fields.get("ignore_eos") is True
        self.priority = fields.get("priority", 0)
        if type(self.priority) is not int or (self.priority and config.args["scheduling_policy"] != "priority"):
            raise Invalid("priority must be a whole number, and needs --scheduling-policy priority")
        self.stream = fields.get("stream") is True
        options = fields.get("stream_options")
        self.usage = isinstance(options, dict) and options.get("include_usage") is True
        self.prompt_logprobs = fields.get("prompt_logprobs") is not None
        if self.prompt_logprobs and (chat or self.stream or fields["prompt_logprobs"] != 0 or isinstance(fields["prompt_logprobs"], bool)):
            raise Invalid("prompt_logprobs must be 0, on /v1/completions without stream")


def _count(fields: dict[str, Any], name: str) -> int | None:
    value = fields.get(name)
    if value is not None and (type(value) is not int or value < (0 if name == "min_tokens" else 1)):
        raise Invalid(f"{name} must be a positive whole number, not {value!r:.50}")
    return value


def _prompt(fields: dict[str, Any], config: SimConfig) -> bytes:
    prompt = fields.get("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], (list, str)):
        prompt = prompt[0]
    vocab = config.model.vocab
    if isinstance(prompt, str):
        prompt = encode(prompt, vocab)
    if not isinstance(prompt, list) or set(map(type, prompt)) - {int}:
        raise Invalid("prompt must be one text or one list of token ids")
    if not prompt:
        raise Invalid("prompt must not be empty")
    if min(prompt) < 0 or max(prompt) >= vocab:
        raise Invalid(f"token ids must be from 0 to {vocab - 1}")
    return pack(prompt)


def _chat_prompt(fields: dict[str, Any], config: SimConfig) -> bytes:
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        raise Invalid("messages must be a list of at least one message")
    parts: list[str] = []
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            content = "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
        if not isinstance(content, str) or not isinstance(message.get("role"), str):
            raise Invalid("every message needs a role and a content of text")
        parts.append(f"<{message['role']}>\n{content}\n")
    return pack(encode("".join(parts) + "<assistant>\n", config.model.vocab))
