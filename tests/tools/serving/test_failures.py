"""Logs of vLLM 0.32 that failed for real (`logs/`), and of GPU machines rebuilt from what vLLM, PyTorch and NCCL print."""

from pathlib import Path

import pytest

from servewright.tools.serving.failures import diagnose, given_up, redact

LOGS = Path(__file__).parent / "logs"


@pytest.mark.parametrize(
    ("name", "kind", "told"),
    [
        ("bad_flag", "bad_flag", "unrecognized arguments: --max-num-seqz 8"),
        ("bad_choice", "bad_flag", "invalid choice: 'lifo'"),
        ("bad_combination", "bad_flag", "max_num_batched_tokens (4) must be greater than or equal to max_num_seqs (8)"),
        ("length_too_long", "bad_flag", "max_model_len (999999) is greater than"),
        ("model_missing", "bad_model", "Repo id must be in the form"),
        ("model_empty", "bad_model", "Invalid repository ID or local directory specified"),
        ("model_unsupported", "bad_model", "['FooForCausalLM'] are not supported"),
        ("quantization_unsupported", "bad_model", "Cannot find the config file for awq"),
        ("kv_too_small", "out_of_memory", "larger than the available KV cache memory"),
        ("kv_no_memory", "out_of_memory", "less than requested memory for kv (400.0 GiB)"),
        ("worker_died", "died", "Worker proc VllmWorker-0 died unexpectedly"),
        ("port_taken", "port_taken", "Address already in use"),
    ],
)
def test_real_logs(name: str, kind: str, told: str) -> None:
    found = diagnose((LOGS / f"{name}.log").read_text(), 1)
    assert found.kind == kind and told in found.line and found.hint and len(found.line) <= 300


@pytest.mark.parametrize(
    ("log", "kind"),
    [
        ("(Worker pid=7) ERROR 11-30 23:30:22 [worker.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "out_of_memory"),
        ("ValueError: Free memory on device (3.1/80.0 GiB) on startup is less than desired GPU memory utilization (0.92, 73.6 GiB).", "out_of_memory"),
        ("ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.", "out_of_memory"),
        ("RuntimeError: Failed to infer device type", "driver_missing"),
        ("RuntimeError: Found no NVIDIA driver on your system.", "driver_missing"),
        ("[rank0]:[E ProcessGroupNCCL.cpp] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)", "driver_missing"),
        ("OSError: Can't load tokenizer for '/models/x'.", "bad_model"),
        ("ModuleNotFoundError: No module named 'vllm'", "not_installed"),
        ("error: max_num_seqs: 0 is not usable; expected a whole number of at least 1", "bad_flag"),
    ],
)
def test_rebuilt_logs(log: str, kind: str) -> None:
    assert diagnose("INFO noise\n" + log + "\nRuntimeError: Engine core initialization failed. See root cause above.", 1).kind == kind


def test_what_only_informs_is_no_reason() -> None:
    log = "(A pid=1) INFO 11-30 23:30:22 [x.py:1] Loading safetensors; out of memory is avoided\n(A pid=1) WARNING 11-30 23:30:22 [x.py:1] address already in use once\nValueError: boom"
    assert diagnose(log, 1).kind == "died" and diagnose(log, 1).line == "ValueError: boom"


def test_without_a_telling_line() -> None:
    assert diagnose("").kind == "unknown" and "empty" in diagnose("").line
    assert diagnose("hello\n", -9).kind == "out_of_memory"
    assert diagnose("hello\n", -15) == diagnose("hello\n", -15) and diagnose("hello\n", -15).kind == "died"


def test_a_start_that_failed_and_hangs_on_is_seen() -> None:
    """Of a worker that died under `ulimit -v`: the server process stayed for minutes, also after SIGTERM."""
    assert given_up((LOGS / "worker_died.log").read_text()) and given_up((LOGS / "kv_too_small.log").read_text())
    assert not given_up((LOGS / "port_taken.log").read_text())


def test_no_secret_leaves_in_an_error() -> None:
    assert redact("token hf_abcdefghijk and sk-proj-123456789, Bearer abc.def api_key=xyz") == "token [redacted] and [redacted], Bearer [redacted] api_key=[redacted]"
    assert "hf_abcdefgh" not in diagnose("OSError: 401 for token hf_abcdefghijk", 1).line
