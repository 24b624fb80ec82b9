import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import psutil
import pytest
from pydantic import ValidationError

from servewright.tools.contract.errors import BadInput, EngineFailure
from servewright.tools.contract.rows import ROW_SCHEMA
from servewright.tools.contract.sla import SLA
from servewright.tools.traffic.frozen import freeze, open_frozen
from servewright.tools.traffic.job import ReplayJob, ReplayProgress, ReplayResult
from servewright.tools.traffic.ladder import Ladder
from servewright.tools.traffic.metrics import step_attainment
from servewright.tools.traffic.replay import run_replay
from servewright.tools.traffic.rows import read_rows
from servewright.tools.traffic.shapes import short_chats
from servewright.tools.traffic.walk import ladder_around, next_step, walked

from .conftest import HEAD, Server, answer, chunk, event, token, usage


@pytest.fixture
def job(tmp_path: Path) -> Callable[..., ReplayJob]:
    def make(server: Server | str, **change: object) -> ReplayJob:
        url = server if isinstance(server, str) else server.url
        settings = {"rates": (40.0,), "window_s": 0.5, "drain_s": 2.0, "rows": str(tmp_path / "rows.parquet")} | change
        workload = settings.pop("workload", None) or str(freeze(short_chats(100, tokens=3), tmp_path))
        return ReplayJob.model_validate({"url": url, "model": "m", "workload": workload, **settings})

    return make


def replay(job: ReplayJob) -> tuple[ReplayResult, pl.DataFrame]:
    """Run a job in this process."""
    ladder = Ladder(job, open_frozen(Path(job.workload)), lambda progress: None)
    result = asyncio.run(ladder.climb(time.perf_counter()))
    assert result.rows is not None
    return result, read_rows(Path(result.rows))


def test_every_request_is_a_row_with_what_the_server_said(serve, job) -> None:
    server = serve()
    result, rows = replay(job(server, warmup_s=0.25))
    assert dict(zip(rows.columns, map(str, rows.dtypes), strict=True)) == ROW_SCHEMA
    assert rows.height == len(server.bodies) == 30 and rows["phase"].value_counts().sort("phase")["count"].to_list() == [20, 10]
    row = rows.row(29, named=True)
    assert row["scheduled_s"] <= row["sent_s"] <= row["first_s"] <= row["last_s"] <= row["end_s"]
    assert (row["status"], row["http_status"], row["finish_reason"], row["output_tokens"], row["chunks"], row["cached_tokens"], row["error"]) == ("ok", 200, "length", 3, 3, 0, None)
    assert rows["text_sha"].n_unique() == 1 and len(row["text_sha"]) == 16
    assert server.bodies[0]["model"] == "m" and server.bodies[0]["stream"] is True
    assert result.stopped_at == "end" and result.error is None and result.client is not None
    assert server.connections <= result.client.connections + 1 < 15, "connections are used again"


def test_times_are_in_server_seconds(serve, job) -> None:
    async def slow(body: dict, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.05)
        await answer(body, writer)

    _, rows = replay(job(serve(slow), clock=10, rates=(4.0,), window_s=5, drain_s=20))
    assert rows.height == 20 and rows["scheduled_s"].to_list()[-1] == pytest.approx(4.75)
    assert (rows["first_s"] - rows["sent_s"]).min() > 0.45


async def _one_byte_at_a_time(body: dict, writer: asyncio.StreamWriter) -> None:
    stream = HEAD + chunk(token("日本")) + chunk(token("語", "length")) + chunk(usage(4, 2)) + chunk(event("[DONE]")) + b"0\r\n\r\n"
    for k in range(0, len(stream), 7):
        writer.write(stream[k : k + 7])
        await writer.drain()
        await asyncio.sleep(0)


async def _several_events_a_segment_cut_anywhere(body: dict, writer: asyncio.StreamWriter) -> None:
    text = (token("日本") + token("語", "length") + usage(4, 2) + event("[DONE]"))[:-2]
    writer.write(HEAD + b"".join(chunk(text[k : k + 11]) for k in range(0, len(text), 11)) + b"0\r\n\r\n")


async def _until_the_connection_ends(body: dict, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + token("日本") + token("語", "length") + usage(4, 2) + event("[DONE]"))
    await writer.drain()
    writer.close()


@pytest.mark.parametrize("handler", [_one_byte_at_a_time, _several_events_a_segment_cut_anywhere, _until_the_connection_ends])
def test_the_stream_is_read_however_it_is_cut(serve, job, handler) -> None:
    _, rows = replay(job(serve(handler)))
    assert rows["status"].unique().to_list() == ["ok"] and rows["output_tokens"].unique().to_list() == [2]
    assert rows["text_sha"].unique().to_list() == ["77710aedc74ecfa3"]


def _plain(status: str, body: bytes = b"") -> Callable:
    async def handler(asked: dict, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    return handler


async def _cut_off(body: dict, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + chunk(token("a")))
    await writer.drain()
    writer.transport.abort()


async def _hang_up(body: dict, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def _broken_event(body: dict, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + chunk(b"data: {nonsense\n\n"))


async def _error_in_the_stream(body: dict, writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + chunk(token("a")) + chunk(event({"error": {"message": "the prompt was: secret", "type": "EngineDead"}})) + chunk(event("[DONE]")) + b"0\r\n\r\n")


async def _not_http(body: dict, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH\r\n")


@pytest.mark.parametrize(
    ("handler", "status", "http", "error"),
    [
        (_plain("503 Service Unavailable"), "refused", 503, "HTTP 503"),
        (_plain("429 Too Many Requests", b'{"error": {"message": "secret", "type": "rate_limited"}}'), "refused", 429, "HTTP 429 rate_limited"),
        (_plain("400 Bad Request", b'{"message": "secret", "code": 400}'), "http_error", 400, "HTTP 400 400"),
        (_plain("200 OK", b'{"choices": [{"text": "not streamed"}]}'), "stream_error", 200, "no event stream in the response"),
        (_cut_off, "connection_lost", 200, "connection lost mid-stream"),
        (_hang_up, "connection_lost", None, "connection lost before a response"),
        (_broken_event, "stream_error", 200, "an event that makes no sense"),
        (_error_in_the_stream, "stream_error", 200, "error in the stream: EngineDead"),
        (_not_http, "stream_error", None, "the response is not HTTP"),
    ],
)
def test_failures_are_rows_with_a_reason_and_never_quote_the_traffic(serve, job, handler, status: str, http: int | None, error: str) -> None:
    _, rows = replay(job(serve(handler), window_s=0.25))
    assert rows.height == 10 and rows["status"].unique().to_list() == [status]
    assert rows["http_status"].unique().to_list() == [http]
    assert all(row.startswith(error) for row in rows["error"]) and "secret" not in "".join(rows["error"])
    assert rows["end_s"].null_count() == 0


def test_a_stall_shows_in_all_that_was_scheduled_meanwhile(serve, job) -> None:
    stalled = threading.Event()

    async def stalling(body: dict, writer: asyncio.StreamWriter) -> None:
        if len(server.bodies) == 20 and not stalled.is_set():
            stalled.set()
            time.sleep(1.0)  # noqa: ASYNC251 (the whole server stops)
        await answer(body, writer)

    server = serve(stalling)
    _, rows = replay(job(server, rates=(40.0,), window_s=2.0, drain_s=5))
    during = rows.filter(pl.col("scheduled_s").is_between(0.55, 1.40))
    assert during.height >= 30 and rows["status"].unique().to_list() == ["ok"]
    left = 0.475 + 1.0 - during["scheduled_s"]
    latency = during["first_s"] - during["scheduled_s"]
    assert (latency >= left - 0.05).all(), "each waited at least for the rest of the stall"
    assert (during["sent_s"] - during["scheduled_s"]).max() < 0.5, "and none was held back"


def test_what_is_open_when_the_drain_ends_is_unfinished(serve, job) -> None:
    async def never(body: dict, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + chunk(token("a")))
        await writer.drain()
        await asyncio.sleep(30)

    result, rows = replay(job(serve(never), window_s=0.25, drain_s=0.3, rates=(40.0, 80.0)))
    assert rows["status"].unique().to_list() == ["unfinished"] and rows.height == 30 and rows["first_s"].null_count() == 0
    assert result.stopped_at == "end"


def test_a_requests_own_limit(serve, job) -> None:
    async def one_slow(body: dict, writer: asyncio.StreamWriter) -> None:
        if len(server.bodies) == 2:
            await asyncio.sleep(1.5)
        await answer(body, writer)

    server = serve(one_slow)
    _, rows = replay(job(server, window_s=0.25, request_timeout_s=0.4))
    assert rows["status"].value_counts().sort("count").rows() == [("timeout", 1), ("ok", 9)]
    assert 0.4 <= rows.filter(status="timeout")["end_s"].item() - rows.filter(status="timeout")["scheduled_s"].item() < 1.2


def test_the_cache_is_emptied_before_every_rate_and_warmed_where_asked(serve, job) -> None:
    server = serve()
    replay(job(server, window_s=0.25, rates=(20.0, 40.0), cache_policy="cold", reset_path="/reset_prefix_cache"))
    order = [path for path in server.paths if path != "/metrics"]
    assert order == ["/reset_prefix_cache"] + ["/v1/chat/completions"] * 5 + ["/reset_prefix_cache"] + ["/v1/chat/completions"] * 10
    server = serve()
    _, rows = replay(job(server, window_s=0.25, rates=(20.0,), cache_policy="warmed", reset_path="/reset_prefix_cache"))
    assert [body["max_tokens"] for body in server.bodies] == [1] * 10 + [3] * 5 and rows.height == 5
    with pytest.raises(BadInput, match="reset_path"):
        replay(job(server, cache_policy="cold"))


def test_a_cache_that_cannot_be_emptied_stops_the_ladder(serve, job) -> None:
    server = serve()
    server.other = b"404 Not Found"
    asked = job(server, cache_policy="cold", reset_path="/reset")
    ladder = Ladder(asked, open_frozen(Path(asked.workload)), lambda progress: None)
    result = asyncio.run(ladder.climb(time.perf_counter()))
    assert (result.stopped_at, result.rows) == ("error", None) and "404" in (result.error or "")


def test_a_walk_visits_what_its_rule_says(serve, job) -> None:
    async def limited(body: dict, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.2 if len(server.bodies) > 100 else 0)
        await answer(body, writer)

    server = serve(limited)
    ladder = ladder_around(40.0)
    asked = job(server, climb=True, reference_capacity=40.0, sla=SLA(ttft_s=0.1), window_s=0.2, rates=ladder)
    result, rows = replay(asked)
    kept = {index: step_attainment(frame, asked.sla) >= 0.95 for (index,), frame in rows.group_by("rate_index")}
    assert result.stopped_at == "end" and True in kept.values() and False in kept.values()
    visited = rows["rate_index"].unique(maintain_order=True).to_list()
    assert visited == walked(ladder, 40.0, kept) and next_step(ladder, 40.0, kept) is None
    with pytest.raises(ValidationError, match="climb needs reference_capacity"):
        job(server, climb=True)


def test_nothing_there_is_said_before_the_first_request(job) -> None:
    with pytest.raises(EngineFailure, match=r"127\.0\.0\.1:9"):
        replay(job("http://127.0.0.1:9"))
    with pytest.raises(BadInput, match="address"):
        replay(job("localhost"))


def test_as_a_process_with_progress(serve, job) -> None:
    server = serve()
    heard: list[ReplayProgress] = []
    result = run_replay(job(server, rates=(40.0, 80.0), cores=(0,)), progress=heard.append)
    assert result.stopped_at == "end" and result.client is not None and result.client.processes == 1
    rows = read_rows(Path(result.rows or ""))
    assert rows.group_by("rate_index").len().sort("rate_index")["len"].to_list() == [20, 40]
    done = [progress for progress in heard if progress.step_done]
    assert [(progress.step, progress.sent, progress.ok, progress.attainment) for progress in done] == [(0, 20, 20, 1.0), (1, 40, 40, 1.0)]


def test_a_server_that_dies_leaves_rows_for_all_requests(serve, job) -> None:
    async def dying(body: dict, writer: asyncio.StreamWriter) -> None:
        if len(server.bodies) == 25:
            threading.Thread(target=server.stop).start()
        await answer(body, writer, pause_s=0.05)

    server = serve(dying)
    result = run_replay(job(server, rates=(40.0, 50.0, 60.0), window_s=2.0))
    assert result.stopped_at == "server_gone" and "gone" in (result.error or "")
    rows = read_rows(Path(result.rows or ""))
    assert rows.height == 80 and rows["status"].null_count() == 0
    counts = dict(rows["status"].value_counts().iter_rows())
    assert counts["ok"] >= 10 and counts["connection_lost"] >= 3 and counts.get("not_sent", 0) > 0


def test_cancelled_it_writes_what_it_has(serve, job) -> None:
    cancel = threading.Event()

    def progress(at: ReplayProgress) -> None:
        if at.step == 1 and at.sent:
            cancel.set()

    result = run_replay(job(serve(), rates=(20.0, 30.0), window_s=1.5), progress=progress, cancel=cancel)
    assert result.stopped_at == "cancelled"
    rows = read_rows(Path(result.rows or ""))
    assert rows.filter(rate_index=0)["status"].unique().to_list() == ["ok"]
    assert "not_sent" in rows.filter(rate_index=1)["status"]


def test_the_worker_ends_when_its_parent_is_killed(serve, job, tmp_path: Path) -> None:
    server = serve()
    asked = tmp_path / "job.json"
    asked.write_text(job(server, rates=(5.0,), window_s=60).model_dump_json())
    code = "import sys; from servewright.tools.traffic.replay import run_replay; from servewright.tools.traffic.job import ReplayJob; run_replay(ReplayJob.model_validate_json(open(sys.argv[1]).read()))"
    parent = subprocess.Popen([sys.executable, "-c", code, str(asked)])
    deadline = time.monotonic() + 30
    while not server.bodies and time.monotonic() < deadline:
        time.sleep(0.05)
    (worker,) = psutil.Process(parent.pid).children()
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    psutil.wait_procs([worker], timeout=15)
    assert not worker.is_running()
