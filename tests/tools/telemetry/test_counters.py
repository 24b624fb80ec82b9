"""Prometheus text to observables, with a real page of vLLM's and a real HTTP server."""

import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewright.tools.contract.errors import BadInput
from servewright.tools.contract.observables import REGISTRY
from servewright.tools.telemetry.counters import WANTED, Scraper, read, summarise
from servewright.tools.telemetry.prometheus import parse

PAGE = (Path(__file__).parent / "vllm-0.32-metrics.txt").read_text()


def test_vllms_own_page() -> None:
    reading = read(parse(PAGE, WANTED), at=0.0)
    assert reading.kv_blocks == 364
    assert reading.counters == {"queries": 2.0, "hits": 0.0, "preemptions": 0.0}
    assert reading.gauges == {"running": 0.0, "waiting": 0.0}
    assert len(parse(PAGE)) > 20


def page(running: int, hits: int, preemptions: int, usage: float) -> str:
    engines = "".join(
        f'vllm:num_requests_running{{engine="{e}"}} {running}\nvllm:kv_cache_usage_perc{{engine="{e}"}} {usage / (e + 1)}\nvllm:prefix_cache_queries_total{{engine="{e}"}} {hits * 2}\n'
        f'vllm:prefix_cache_hits_total{{engine="{e}"}} {hits}\nvllm:num_preemptions_total{{engine="{e}"}} {preemptions}\n'
        f"vllm:spec_decode_num_drafts_total {hits}\nvllm:spec_decode_num_accepted_tokens_total {hits * 3}\n"
        for e in range(2)
    )
    return engines + 'sim:clock_lag_seconds{quantile="0.5"} 9\nsim:clock_lag_seconds{quantile="0.99"} 0.25\n'


def test_engines_behind_one_address_are_summed_and_counters_are_differences() -> None:
    readings = [read(parse(page(*values)), at=float(i)) for i, values in enumerate([(1, 10, 5, 0.2), (3, 20, 6, 0.8), (2, 40, 9, 0.4)])]
    figures = summarise(readings)
    assert figures == {
        "running_mean": 4.0, "running_max": 6.0, "kv_usage_max": 0.8, "preemptions": 8.0, "prefix_hit_share": 0.5, "acceptance_length": 4.0,
    }  # fmt: skip
    assert all(REGISTRY[name].source in ("counters", "config") for name in figures)
    assert readings[0].clock_lag_s == 0.25
    assert summarise([]) == {}


@pytest.mark.parametrize("line", ["no value", 'a{b="c} 1', "a{b=c} 1", "a b", '{x="1"} 3'])
def test_what_is_not_the_format_is_refused(line: str) -> None:
    with pytest.raises(BadInput, match="metrics"):
        parse(line)


@given(st.dictionaries(st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True), st.text(st.characters(exclude_categories=("Cc", "Cs")) | st.just("\n")), max_size=4),
       st.floats(allow_nan=False))  # fmt: skip
def test_labels_come_back_as_they_were(labels: dict[str, str], value: float) -> None:
    table = str.maketrans({"\\": r"\\", '"': r'\"', "\n": r"\n"})
    escaped = ",".join(f'{name}="{text.translate(table)}"' for name, text in labels.items())
    number = {float("inf"): "+Inf", float("-inf"): "-Inf"}.get(value, repr(value))
    (sample,) = parse(f"vllm:x{{{escaped}}} {number} 123")
    assert (sample.name, sample.labels, sample.value) == ("vllm:x", labels, value)


@pytest.fixture
def server() -> Iterator[http.server.HTTPServer]:
    class Handler(http.server.BaseHTTPRequestHandler):
        asked = 0

        def do_GET(self) -> None:
            Handler.asked += 1
            body = page(Handler.asked, Handler.asked * 10, Handler.asked, 0.5).encode() if Handler.asked != 2 else b"not metrics"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            time.sleep(0.01)

    listener = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listener.serve_forever, args=(0.01,))
    thread.start()
    yield listener
    listener.shutdown()
    listener.server_close()
    thread.join()


def test_the_scraper_survives_gaps_and_counts_from_a_restart(server: http.server.HTTPServer) -> None:
    scraper = Scraper(f"http://127.0.0.1:{server.server_port}", interval_s=0.02).start()
    while len(scraper.readings) < 4:
        time.sleep(0.01)
    assert scraper.missed == 1
    scraper.restart()
    assert scraper.observables()["preemptions"] == 0
    while len(scraper.readings) < 3:
        time.sleep(0.01)
    scraper.stop()
    assert scraper.observables()["preemptions"] == 2 * (len(scraper.readings) - 1)
    assert scraper.clock_lag_s() == 0.25
