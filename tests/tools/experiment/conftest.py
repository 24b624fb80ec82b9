"""A small endpoint in virtual time, badly configured, whose campaign takes seconds."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from servewright.tools.contract.endpoint import Endpoint
from servewright.tools.contract.hypothesis import Hypothesis
from servewright.tools.experiment.campaign import Campaign
from servewright.tools.experiment.views import Progress
from servewright.tools.ledger.project import Project

Make = Callable[..., Campaign]
NEVER = threading.Event()


def deaf(_: Progress) -> None:
    """A listener for whom progress is nothing to keep."""


def trace(path: Path, requests: int = 400) -> Path:
    """Chats that share two system prompts of two 512-token blocks, in Mooncake's format."""
    rng, at, lines = random.Random(3), 0.0, []
    for number in range(requests):
        at += rng.expovariate(5.0)
        system, own = rng.randrange(2), rng.randint(40, 300)
        lines.append({"timestamp": round(at * 1000), "input_length": 1024 + own, "output_length": rng.randint(30, 120), "hash_ids": [2 * system, 2 * system + 1, 100 + number]})
    path.write_bytes(b"\n".join(orjson.dumps(line) for line in lines) + b"\n")
    return path


@pytest.fixture
def endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Endpoint:
    monkeypatch.setenv("SERVEWRIGHT_STATE", str(tmp_path / "state"))
    return Endpoint.model_validate(
        {
            "name": "small",
            "engine": {"kind": "sim", "args": {"max_num_seqs": 4, "enable_prefix_caching": False}},
            "model": {"name": "llama-3.1-8b"},
            "hardware": {"profile": "h100-sxm"},
            "sla": {"ttft_s": 2.0, "tpot_s": 0.05, "attainment": 0.9},
            "workload": {"trace": str(trace(tmp_path / "trace.jsonl"))},
            "measurement": {"mode": "virtual", "window_s": 8, "warmup_s": 1, "drain_s": 4, "screen": "virtual", "floor_runs": 3, "shams": 1},
        }
    )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def make(project: Project, endpoint: Endpoint) -> Make:
    def made(**measurement: object) -> Campaign:
        changed = Endpoint.model_validate(endpoint.model_dump() | {"measurement": endpoint.measurement.model_dump() | measurement})
        return Campaign.open(project, changed, "t1")

    return made


def hypothesis(change: dict[str, object], **other: object) -> Hypothesis:
    """One that proposes the change, with a falsifier that can fire and the proof that the change is active."""
    plain: dict[str, object] = {
        "family": "scheduling",
        "title": "A change to try",
        "explanation": "Requests queue for a slot while the KV cache is nearly empty.",
        "intervention": {"set": change},
        "prediction": {"low": 0.1, "high": 2.0},
        "falsifiers": [{"observable": "capacity_rps_per_gpu", "arm": "ratio", "op": "<", "value": 1.0}],
        "activation": [{"observable": f"config.{name}", "op": "==", "value": value} for name, value in change.items()],
        "minimum_effect": 0.1,
    }
    return Hypothesis.model_validate(plain | other)
