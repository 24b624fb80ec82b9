"""`serve` on the embedded engine: a real server process and real sockets."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from servewright.tools.contract.configuration import Configuration
from servewright.tools.contract.endpoint import Endpoint
from servewright.tools.contract.errors import BadInput, EngineFailure
from servewright.tools.serving.cores import available, shared, split_cores
from servewright.tools.serving.custody import Cancelled
from servewright.tools.serving.engines import engine_for
from servewright.tools.serving.launch import serve
from servewright.tools.serving.leases import Leases
from servewright.tools.serving.processes import alive, identify
from servewright.tools.telemetry.http import request


def endpoint(**engine: Any) -> Endpoint:
    return Endpoint.model_validate(
        {"name": "t", "engine": {"kind": "sim"} | engine, "model": {"name": "llama-3.1-8b"}, "hardware": {"profile": "h100-sxm"}, "sla": {"ttft_s": 1.0},
         "workload": {"trace": "/nowhere"}, "measurement": {"clock": 20}}
    )  # fmt: skip


def sim(**args: Any) -> Configuration:
    return Configuration(kind="sim", args=args)


def test_launch_measure_stop(tmp_path: Path) -> None:
    with serve(endpoint(), sim(max_num_seqs="8", enable_prefix_caching=False), log=tmp_path / "e.log", launch_seed=1) as server:
        engine = identify(server.pid)
        server.restart_counters()
        report = server.report()
        assert report.effective["max_num_seqs"] == 8 and report.effective["enable_prefix_caching"] is False
        assert report.counters["kv_blocks"] == report.effective["num_gpu_blocks"] > 0
        assert report.counters["preemptions"] == 0 and report.launch_s > 0 and report.build.startswith("servewright-sim ")
        assert server.reset_path and request(server.url, server.reset_path, method="POST")[0] == 200
        assert server.failure() is None
        assert [lease.engine for lease in Leases().all()] == [engine]
    assert not alive(engine) and Leases().all() == ()


def test_an_engine_that_dies_while_serving_says_so_and_the_exit_is_clean(tmp_path: Path) -> None:
    import os

    with serve(endpoint(), sim(), log=tmp_path / "e.log", launch_seed=1) as server:
        engine = identify(server.pid)
        os.kill(server.pid, 9)
        while alive(engine):
            time.sleep(0.01)
        time.sleep(0.5)
        failure = server.failure()
        assert failure is not None and (failure.kind, failure.stage) == ("died", "replay") and "killed by signal 9" in failure.line
    assert Leases().all() == ()


def test_out_of_memory_at_the_start_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(EngineFailure) as caught, serve(endpoint(), sim(num_gpu_blocks_override=2), log=tmp_path / "e.log", launch_seed=1):
        pass
    assert caught.value.kind == "out_of_memory" and "KV cache" in caught.value.line and caught.value.log == str(tmp_path / "e.log")
    assert Leases().all() == ()


def test_bad_flags_never_reach_a_launch(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nearest: max_num_seqs"), serve(endpoint(), sim(max_num_seq=8), log=tmp_path / "no" / "e.log", launch_seed=1):
        pass
    assert not (tmp_path / "no").exists()


def test_cancel_while_waiting(tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled), serve(endpoint(), sim(), log=tmp_path / "e.log", launch_seed=1, cancel=cancel):
        pass
    assert Leases().all() == ()


def test_an_error_in_the_block_still_stops_the_engine(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), serve(endpoint(), sim(), log=tmp_path / "e.log", launch_seed=1) as server:
        engine = identify(server.pid)
        raise KeyboardInterrupt
    assert not alive(engine)


def test_the_lease_passes_on_to_the_next(tmp_path: Path) -> None:
    """Two at once on the same cores: the second waits, both are served."""
    told: list[str] = []
    spans: list[tuple[float, float]] = []

    def one(number: int) -> None:
        with serve(endpoint(), sim(), log=tmp_path / f"{number}.log", launch_seed=number, progress=told.append):
            begun = time.monotonic()
            time.sleep(0.3)
            spans.append((begun, time.monotonic()))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (_, first_end), (second_begin, _) = sorted(spans)
    assert second_begin > first_end and any("held by 't'" in text for text in told)


def test_cores_are_split_where_there_are_two() -> None:
    engine, client = split_cores(endpoint())
    here = available()
    assert (set(engine) & set(client) == set()) == (len(here) > 1) == (shared(engine, client) == "")
    assert split_cores(endpoint(cores=[here[0]]))[0] == (here[0],)
    with pytest.raises(BadInput, match=r"engine\.cores"):
        split_cores(endpoint(cores=[4096]))


def test_sglang_is_a_clear_no() -> None:
    with pytest.raises(BadInput, match="sim or vllm"):
        engine_for(_sglang())


def _sglang() -> Endpoint:
    raw = endpoint().model_dump()
    raw["engine"]["kind"], raw["measurement"]["clock"] = "sglang", 1
    return Endpoint.model_validate(raw)
