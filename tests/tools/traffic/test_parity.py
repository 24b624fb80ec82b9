import asyncio
import json

from servewright.tools.traffic.parity import probe


def telling(reply) -> object:
    async def handler(body: dict, writer: asyncio.StreamWriter) -> None:
        status, value = reply(body)
        text = json.dumps(value).encode()
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(text), text))

    return handler


def good(body: dict) -> tuple[int, dict]:
    ids = body["prompt"]
    told = [None] + [{str(i): {"logprob": -i / 1000, "rank": 3}, "1": {"logprob": -0.1, "rank": 1}} for i in ids[1:]]
    return 200, {"choices": [{"text": "x", "prompt_logprobs": told}]}


def test_probabilities_of_frozen_tokens(serve) -> None:
    server = serve(telling(good))
    found = probe(server.url, "m", probes=3, tokens=8, vocab=49_152)
    assert [len(row) for row in found.logprobs] == [7, 7, 7] and found.why_missing == ""
    ids = [body["prompt"] for body in server.bodies]
    assert found.logprobs[2] == tuple(-i / 1000 for i in ids[2][1:])
    assert server.bodies[0]["prompt_logprobs"] == 0 and server.bodies[0]["max_tokens"] == 1
    again = serve(telling(good))
    assert probe(again.url, "m", probes=3, tokens=8, vocab=49_152) == found
    assert probe(again.url, "m", probes=3, tokens=8, vocab=49_152, seed=1) != found


def test_engines_without_them_say_why(serve) -> None:
    replies = {
        "HTTP 400": lambda body: (400, {"error": "no"}),
        "gives no prompt": lambda body: (200, {"choices": [{"text": "x"}]}),
        "of 1 tokens": lambda body: (200, {"choices": [{"prompt_logprobs": [None]}]}),
        "shape": lambda body: (200, {"choices": [{"prompt_logprobs": [None] + [{}] * 47}]}),
        "(TypeError)": lambda body: (200, []),
    }
    for said, reply in replies.items():
        found = probe(serve(telling(reply)).url, "m")
        assert found.logprobs == () and said in found.why_missing
    assert "no answer" in probe("http://127.0.0.1:9", "m").why_missing
