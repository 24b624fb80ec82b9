"""The embedded engine over real sockets."""

import asyncio
import json
import socket
import subprocess
import sys
import time

import pytest

from servewright.tools.contract.errors import BadInput, EngineFailure
from servewright.tools.simulator.server import serve

PROMPT = list(range(1000, 1100))


def ask(**fields):
    return {"model": "llama-3.1-8b", "prompt": PROMPT, "max_tokens": 6, "ignore_eos": True, **fields}


def test_answers_depend_on_the_prompt_alone(server):
    status, first = server.json("/v1/completions", ask())
    again = server.json("/v1/completions", ask())[1]
    other = server.json("/v1/completions", ask(prompt=PROMPT[1:]))[1]
    assert status == 200
    assert first["usage"]["prompt_tokens"] == 100 and first["usage"]["completion_tokens"] == 6
    assert first["choices"][0]["finish_reason"] == "length"
    assert first["choices"][0]["text"] == again["choices"][0]["text"] != other["choices"][0]["text"]
    assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 96


async def test_stream_gives_the_same_text_token_by_token(stream, server):
    whole = server.json("/v1/completions", ask(max_tokens=9))[1]
    events, _ = await stream(server.port, ask(max_tokens=9))
    texts = [event["choices"][0]["text"] for event in events if event["choices"]]
    assert len(texts) == 9 and "".join(texts) == whole["choices"][0]["text"]
    assert [event["choices"][0]["finish_reason"] for event in events if event["choices"]] == [None] * 8 + ["length"]
    assert events[-1]["usage"]["completion_tokens"] == 9 and events[-1]["choices"] == []


async def test_chat_continues_from_the_cache_of_its_own_answer(stream, server):
    turn = [{"role": "user", "content": "tell me of the long and winding road " * 8}]
    events, _ = await stream(server.port, {"messages": turn, "max_tokens": 40, "ignore_eos": True}, "/v1/chat/completions")
    deltas = [event["choices"][0]["delta"] for event in events if event["choices"]]
    assert deltas[0] == {"role": "assistant", "content": ""}
    answer = "".join(delta["content"] for delta in deltas)
    length = events[-1]["usage"]["prompt_tokens"]
    follow = [*turn, {"role": "assistant", "content": answer}, {"role": "user", "content": "and then?"}]
    usage = server.json("/v1/chat/completions", {"messages": follow, "max_tokens": 2, "ignore_eos": True})[1]["usage"]
    assert usage["prompt_tokens_details"]["cached_tokens"] >= length - 16


def test_an_answer_ends_by_itself_unless_told_otherwise(server):
    _, body = server.json("/v1/completions", ask(ignore_eos=False, max_tokens=4000))
    natural = body["usage"]["completion_tokens"]
    assert body["choices"][0]["finish_reason"] == "stop" and natural < 2000
    _, body = server.json("/v1/completions", ask(ignore_eos=False, max_tokens=4000, min_tokens=natural + 3))
    assert body["usage"]["completion_tokens"] == natural + 3


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        ask(prompt=[-1]),
        ask(prompt=[10**7]),
        ask(prompt=[True, 2]),
        ask(prompt=[]),
        ask(prompt=None),
        ask(max_tokens=-1),
        ask(max_tokens=1.5),
        ask(max_tokens=10**9),
        ask(prompt=[5] * 140000),
        ask(n=2),
        ask(priority=1),
        ask(prompt_logprobs=3),
        ask(min_tokens=7),
        {"messages": []},
    ],
    ids=str,
)
def test_bad_bodies_are_refused_in_openais_form(server, body):
    path = "/v1/chat/completions" if isinstance(body, dict) and "messages" in body else "/v1/completions"
    status, answer = server.json(path, body)
    assert status == 400 and answer["error"]["code"] == 400 and answer["error"]["message"]


def test_unknown_models_and_paths(server):
    assert server.json("/v1/completions", ask(model="gpt-9"))[0] == 404
    assert server.call("/nothing")[0] == 404
    assert server.call("/v1/completions")[0] == 405


def test_what_it_says_of_itself(server):
    assert server.call("/health")[0] == 200
    assert server.json("/v1/models")[1]["data"][0]["max_model_len"] == 131072
    config = server.json("/server_info?config_format=json")[1]["vllm_config"]
    assert config["max_num_seqs"] == 8 and config["enable_prefix_caching"] is True and config["num_gpu_blocks"] > 1000
    text = server.call("/metrics")[1].decode()
    for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "num_preemptions_total", "prefix_cache_hits_total", "cache_config_info"):
        assert f"vllm:{name}{{" in text


def test_reset_empties_the_prefix_cache(server):
    server.json("/v1/completions", ask())
    assert server.json("/v1/completions", ask())[1]["usage"]["prompt_tokens_details"]["cached_tokens"] == 96
    assert server.json("/reset_prefix_cache", method="POST") == (200, {"reset": True})
    assert server.json("/v1/completions", ask())[1]["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def test_prompt_logprobs_in_vllms_form(server):
    values = server.json("/v1/completions", ask(max_tokens=1, prompt_logprobs=0))[1]["choices"][0]["prompt_logprobs"]
    assert values[0] is None and len(values) == len(PROMPT)
    assert all(entry[str(token)]["logprob"] < 0 for entry, token in zip(values[1:], PROMPT[1:], strict=True))


async def test_a_client_that_leaves_frees_its_blocks(server):
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    body = json.dumps(ask(max_tokens=100000, stream=True)).encode()
    writer.write(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
    await reader.read(100)
    assert await asyncio.to_thread(server.metric, "vllm:num_requests_running") == 1
    writer.close()
    await writer.wait_closed()
    for _ in range(100):
        if not await asyncio.to_thread(server.metric, "vllm:num_requests_running"):
            break
        await asyncio.sleep(0.02)
    assert await asyncio.to_thread(server.metric, "vllm:num_requests_running") == 0
    assert await asyncio.to_thread(server.metric, "vllm:kv_cache_usage_perc") == 0


async def test_too_few_sequences_make_requests_wait(stream, server):
    tasks = [asyncio.create_task(stream(server.port, ask(prompt=[i + 500] * 50, max_tokens=400))) for i in range(12)]
    seen = (0.0, 0.0)
    for _ in range(200):
        running, waiting = [await asyncio.to_thread(server.metric, f"vllm:num_requests_{name}") for name in ("running", "waiting")]
        seen = max(seen, (running, waiting))
        if seen == (8, 4):
            break
    await asyncio.gather(*tasks)
    assert seen == (8, 4)


def test_pipelined_requests_are_answered_in_order(server):
    body = json.dumps(ask(max_tokens=2)).encode()
    one = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(one + b"GET /version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        data = b""
        while chunk := client.recv(65536):
            data += chunk
    assert data.index(b"text_completion") < data.index(b'"version"')


def test_not_http(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"\x00\x01hello\r\n\r\n")
        data = b""
        while chunk := client.recv(65536):
            data += chunk
    assert data.startswith(b"HTTP/1.1 400")
    assert server.call("/health")[0] == 200


def test_sigterm_ends_it_cleanly_with_work_open(launch):
    running = launch("--clock", "1")
    with socket.create_connection(("127.0.0.1", running.port), timeout=10) as client:
        body = json.dumps(ask(max_tokens=50000, stream=True)).encode()
        client.sendall(b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
        client.recv(10)
        started = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - started < 5


def run(*flags):
    command = [sys.executable, "-m", "servewright.tools.simulator.server", "--port", "0", *flags]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        (["--model", "llama-3.1-8b", "--max-num-seq", "4"], "--max-num-seqs"),
        (["--model", "llama-3.1-8b", "--max-num-seqs", "many"], "--max-num-seqs"),
        (["--model", "llama-3.1-8b", "--max-num-seqs", "9000"], "--max-num-batched-tokens"),
        (["--model", "llama-3.1-8b", "--block-size", "17"], "--block-size"),
        (["--model", "llama-9"], "llama-3.1-8b"),
        (["--model", "llama-3.1-8b", "--hardware", "abacus"], "h100-sxm"),
        (["--model", "llama-3.1-8b", "--clock", "nan"], "--clock"),
        (["--model", "llama-3.1-8b", "--dtype"], "--dtype"),
        ([], "--model"),
    ],
)
async def test_bad_flags_are_named(flags, names):
    with pytest.raises(BadInput, match=names):
        await serve(flags)


def test_a_bad_flag_ends_it_with_one_line():
    code, text = run("--model", "llama-3.1-8b", "--max-num-seq", "4")
    assert code == 2 and "--max-num-seqs" in text and text.count("\n") == 1


async def test_too_long_for_the_memory_left():
    with pytest.raises(EngineFailure, match="out of memory"):
        await serve(["--model", "llama-3.1-8b", "--gpu-memory-utilization", "0.25"])


def test_what_does_not_fit_says_out_of_memory():
    code, text = run("--model", "llama-3.1-70b")
    assert code == 1 and "out of memory" in text and text.count("\n") == 1


def test_a_taken_port_is_named(launch):
    running = launch()
    code, text = run("--model", "llama-3.1-8b", "--port", str(running.port))
    assert code == 1 and str(running.port) in text
