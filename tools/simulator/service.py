"""The routes of the embedded engine: OpenAI's API, and what vLLM serves beside it."""

from __future__ import annotations

import random

from .api import Ask, Invalid
from .clocked import ClockedEngine
from .config import BUILD
from .http import Connection
from .logprobs import lossy, prompt_logprobs
from .metrics import render
from .request import Request, block_hashes
from .stream import AnswerStream
from .tokens import Answer


class EngineService:
    """`http.Service` over a clocked engine. `model` is the name it answers to."""

    def __init__(self, engine: ClockedEngine, model: str) -> None:
        self.engine, self.model = engine, model
        self._numbers = 0
        self._lossy = lossy(engine.config)
        self._noise = random.Random(engine.config.launch_seed)
        self._block = int(engine.config.args["block_size"])
        self._caching = bool(engine.config.args["enable_prefix_caching"])
        self._interval = int(engine.config.args["stream_interval"])

    def handle(self, connection: Connection, method: str, path: str, query: str, body: bytes) -> None:
        if path in ("/v1/completions", "/v1/chat/completions"):
            if method != "POST":
                connection.reply(405, {"detail": "Method Not Allowed"})
                return
            try:
                self._generate(connection, Ask(body, path.endswith("chat/completions"), self.model, self.engine.config))
            except Invalid as error:
                connection.reply(error.status, {"error": {"message": str(error), "type": error.kind, "param": None, "code": error.status}})
            return
        self._inform(connection, method, path)

    def _inform(self, connection: Connection, method: str, path: str) -> None:
        config = self.engine.config
        if (method, path) == ("POST", "/reset_prefix_cache"):
            connection.reply(200, {"reset": self.engine.reset_prefix_cache()})
        elif method != "GET":
            connection.reply(404, {"detail": "Not Found"})
        elif path in ("/health", "/ping"):
            connection.reply(200, b"")
        elif path == "/metrics":
            connection.reply(200, render(self.engine, self.model), "text/plain; version=0.0.4; charset=utf-8")
        elif path == "/v1/models":
            card = {"id": self.model, "object": "model", "owned_by": "servewright", "root": config.model.name, "max_model_len": config.args["max_model_len"]}
            connection.reply(200, {"object": "list", "data": [card]})
        elif path == "/version":
            connection.reply(200, {"version": BUILD})
        elif path == "/server_info":
            facts = {"model": config.model.name, "hardware": config.hardware.name, "gpus": config.gpus, "clock": self.engine.clock, "launch_speed": self.engine.cost.speed}
            connection.reply(200, {"vllm_config": config.effective(), "sim": facts})
        else:
            connection.reply(404, {"detail": "Not Found"})

    def _generate(self, connection: Connection, ask: Ask) -> None:
        engine, config = self.engine, self.engine.config
        arrival = engine.now()
        answer = Answer(ask.prompt, config.model.name, self._lossy, config.model.vocab)
        limit, natural = ask.limit, False
        if not ask.ignore_eos:
            length = max(ask.minimum, answer.natural_length())
            natural = length <= limit
            limit = min(limit, length)
        extra = None
        self._numbers += 1
        seed = 0
        if ask.prompt_logprobs:
            # As in vLLM such a request reads nothing from the prefix cache: it needs every position computed.
            seed = self._numbers
            values = prompt_logprobs(ask.prompt, config, self._noise)
            tokens = memoryview(ask.prompt).cast("I")
            extra = {"prompt_logprobs": [None, *({str(token): {"logprob": value, "rank": None, "decoded_token": None}} for token, value in zip(tokens[1:], values, strict=True))]}
        hashes = block_hashes(ask.prompt, self._block, seed) if self._caching else ()
        request = Request(self._numbers, ask.length, limit, hashes, arrival=arrival, priority=ask.priority, salt=answer.seed ^ seed)
        stream = AnswerStream(
            request,
            answer,
            chat=ask.chat,
            stream=ask.stream,
            usage=ask.usage,
            natural=natural,
            model=self.model,
            interval=self._interval,
            write=connection.send,
            done=connection.finished,
            extra=extra,
        )
        connection.answer = stream
        engine.submit(request, stream)

    def closed(self, connection: Connection) -> None:
        if isinstance(connection.answer, AnswerStream):
            self.engine.abort(connection.answer.request)
            connection.answer = None
