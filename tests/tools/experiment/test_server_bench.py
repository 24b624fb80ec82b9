"""One run on the real embedded server: real process, real sockets, the raw artifacts of it."""

from __future__ import annotations

import threading
from pathlib import Path

import polars as pl
import psutil
import pytest

from servewright.tools.contract.configuration import Configuration
from servewright.tools.contract.endpoint import Endpoint
from servewright.tools.contract.rows import ROW_SCHEMA
from servewright.tools.experiment.bench import RunRequest
from servewright.tools.experiment.policy import policy_of
from servewright.tools.experiment.server_bench import ServerBench
from servewright.tools.experiment.workload import frozen_workload
from servewright.tools.ledger.project import Project
from servewright.tools.serving.custody import Cancelled


@pytest.fixture
def bench(endpoint: Endpoint) -> ServerBench:
    measurement = endpoint.measurement.model_dump() | {"mode": "http", "clock": 5, "rates": (2.0, 6.0), "window_s": 8, "drain_s": 10}
    return ServerBench(Endpoint.model_validate(endpoint.model_dump() | {"measurement": measurement}))


def request(bench: ServerBench, folder: Path, args: dict) -> RunRequest:
    path, _ = frozen_workload(bench.endpoint, Project(folder / "project"), "t")
    policy = policy_of(bench.endpoint)
    return RunRequest(Configuration(kind="sim", args=args), path, "held_out", (2.0, 6.0), 2.0, policy, 7, folder / "run", probe=True)


def engines() -> list[psutil.Process]:
    return [p for p in psutil.process_iter(["cmdline"]) if "servewright.tools.simulator.server" in (p.info["cmdline"] or []) and str(7) in (p.info["cmdline"] or [])]


def test_a_run_gives_rows_reports_and_probe_and_leaves_no_server(bench: ServerBench, tmp_path: Path) -> None:
    told: list[str] = []
    artifacts = bench.run(request(bench, tmp_path, {"max_num_seqs": 32}), lambda message, *_: told.append(message), threading.Event())
    assert artifacts.failure is None and artifacts.rows and artifacts.server and artifacts.client
    rows = pl.read_parquet(artifacts.rows)
    assert {name: str(dtype) for name, dtype in rows.schema.items()} == ROW_SCHEMA
    assert set(rows["rate_index"]) == {0, 1} and rows.filter(status="ok").height > 0
    assert artifacts.server.effective["max_num_seqs"] == 32
    assert artifacts.server.counters["prefix_hit_share"] > 0.3
    assert len(artifacts.probe.logprobs) == 6
    assert artifacts.log and Path(artifacts.log).is_file()
    assert any("launching" in message for message in told) and any("answered" in message for message in told)
    assert not engines()


def test_a_bad_flag_is_an_artifact_and_not_an_exception(bench: ServerBench, tmp_path: Path) -> None:
    artifacts = bench.run(request(bench, tmp_path, {"num_gpu_blocks_override": 8}), lambda *_: None, threading.Event())
    assert artifacts.rows is None and artifacts.failure is not None
    assert (artifacts.failure.kind, artifacts.failure.stage) == ("out_of_memory", "start")
    assert "out of memory" in artifacts.failure.line


def test_stopping_in_the_middle_leaves_no_server(bench: ServerBench, tmp_path: Path) -> None:
    stop = threading.Event()

    def stop_while_replaying(message: str, *_: float) -> None:
        if "answered" in message:
            stop.set()

    with pytest.raises(Cancelled):
        bench.run(request(bench, tmp_path, {"max_num_seqs": 32}), stop_while_replaying, stop)
    assert not engines()
