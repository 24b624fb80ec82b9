"""`servewright init`: a command line becomes an endpoint file; nothing of it is run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from servewright.tools.contract.endpoint import load_endpoint
from servewright.tools.contract.errors import BadInput
from servewright.tools.serving.reading import endpoint_yaml, read_command


def servewright(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "servewright.graph.cli.main", *arguments], capture_output=True, text=True, check=False)


COMMAND = (
    "CUDA_VISIBLE_DEVICES=2,3 VLLM_USE_DEEP_GEMM=1 SECRET=1 /opt/v/bin/vllm serve Qwen/Qwen3-8B -tp 2 --max-num-seqs=64 --max-model-len 8K --no-enable-prefix-caching --enforce-eager "
    "--served-model-name chat other --cudagraph-capture-sizes 1 2 4 --port 8000 --api-key sk-verysecret --speculative-config '{\"method\": \"ngram\"}'"
)


def test_a_real_command_becomes_an_endpoint_that_loads(tmp_path: Path) -> None:
    out = tmp_path / "endpoint.yaml"
    told = servewright("init", "--from", COMMAND, "-o", str(out))
    assert told.returncode == 0 and "# guess" in told.stdout
    text = out.read_text()
    assert "verysecret" not in text and "# left out: port=8000" in text and "# left out: SECRET" in text
    (tmp_path / "trace.jsonl").write_text("{}\n")
    endpoint = load_endpoint(out)
    assert endpoint.engine.args == {
        "tensor_parallel_size": 2, "max_num_seqs": 64, "max_model_len": 8192, "enable_prefix_caching": False, "enforce_eager": True, "cudagraph_capture_sizes": "1 2 4",
        "speculative_config": '{"method": "ngram"}',
    }  # fmt: skip
    assert (endpoint.model.name, endpoint.model.path, endpoint.hardware.gpus, endpoint.engine.env) == ("chat", "Qwen/Qwen3-8B", 2, {"VLLM_USE_DEEP_GEMM": "1"})
    refused = servewright("init", "--from", COMMAND, "-o", str(out))
    assert refused.returncode == 2 and "--force" in refused.stderr


def test_what_must_be_filled_in_is_named_and_then_the_next_command_reads_the_file(tmp_path: Path) -> None:
    out, trace = tmp_path / "endpoint.yaml", tmp_path / "trace.jsonl"
    told = servewright("init", "--from", "vllm serve Qwen/Qwen3-8B --max-num-seqs 64", "-o", str(out)).stdout
    assert f"workload.trace: {trace} isn't there yet" in told and list(tmp_path.iterdir()) == [out]
    lines = out.read_text().splitlines()
    for field in ("ttft_s", "profile", "installation", "workload_class"):
        named = next(line for line in told.splitlines() if f": {field}:" in line)
        assert field in lines[int(named.split()[1].rstrip(":")) - 1]
    with pytest.raises(BadInput, match=r"workload\.trace"):
        load_endpoint(out)
    assert servewright("trace", "synth", "--out", str(trace), "--requests", "20").returncode == 0
    assert load_endpoint(out).workload.trace == str(trace)
    again = servewright("init", "--force", "--from", "vllm serve x", "-o", str(out)).stdout
    assert "isn't there yet" not in again and "marked '# guess'" in again


def test_json_lists_the_guesses() -> None:
    told = json.loads(servewright("init", "--json", "--from", "python3 -m vllm.entrypoints.openai.api_server --model /models/x").stdout)
    assert yaml.safe_load(told["yaml"])["model"] == {"name": "/models/x", "path": "/models/x"}
    assert any("ttft_s" in guess for guess in told["guesses"])


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("rm -rf /", "vllm serve MODEL"),
        ("vllm serve x; rm -rf /", "one serve command"),
        ("vllm serve x | tee log", "one serve command"),
        ("vllm serve 'x", "a shell could split"),
        ("vllm serve", "a model"),
        ("vllm serve a b", "one model"),
        ("vllm serve x --max-num-seqz 8", "nearest: max_num_seqs"),
        ("vllm serve x --max-num-seqs", "a value after it"),
        ("vllm serve x --max-num-seqs many", "a whole number"),
        ("", "vllm serve MODEL"),
    ],
)
def test_what_is_no_serve_command(command: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        read_command(command)


def test_nothing_in_the_command_becomes_another_line_of_the_file() -> None:
    text = endpoint_yaml(read_command("vllm serve 'x\nname: evil' --host 'h\nalpha: 0.4' --chat-template 'a: b # c'"))
    raw = yaml.safe_load(text)
    assert raw["name"] != "evil" and "alpha" not in raw and raw["engine"]["args"] == {"chat_template": "a: b # c"}


