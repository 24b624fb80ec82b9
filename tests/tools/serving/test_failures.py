"""Logs of vLLM 0.32 that failed for real (`logs/`), and of GPU machines rebuilt from what vLLM, PyTorch and NCCL print."""

from pathlib import Path

import pytest

from servewright.tools.serving.failures import Diagnosis, diagnose, given_up, redact
from servewright.tools.serving.oom import oom_kills

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
    banner = "INFO 11-30 23:30:22 [api_server.py:1] vLLM API server version 0.32, no error so far\nServewright engine at http://127.0.0.1:1\n"
    assert [(found.kind, found.line) for found in (diagnose(banner, 1), diagnose("", 0), diagnose(banner, -15), diagnose(banner, -63))] == [
        ("died", "ended without a word (exit code 1)"),
        ("died", "ended without a word (exit code 0)"),
        ("died", "ended without a word (signal 15, SIGTERM)"),
        ("died", "ended without a word (signal 63)"),
    ]
    assert diagnose(banner + "(EngineCore pid=2) ERROR 11-30 23:30:22 [core.py:1] EngineCore failed to start.\n", 1).line == "EngineCore failed to start."
    assert diagnose(banner + "Fatal Python error: Segmentation fault\n", -11) == Diagnosis("died", "Fatal Python error: Segmentation fault", "signal 11, SIGSEGV")


def test_a_kill_is_lack_of_memory_only_where_the_log_or_the_kernel_says_so() -> None:
    nobody = diagnose("hello\n", -9)
    assert nobody.kind == "died" and nobody.line == "killed by signal 9 (by a person, a supervisor or the kernel's out-of-memory killer)"
    assert diagnose("hello\n", -9, kernel_killed=True).kind == "out_of_memory" and diagnose("MemoryError\n", -9).kind == "out_of_memory"
    assert diagnose("hello\n", 1, kernel_killed=True).kind == "died"


def test_the_kernels_count_is_read_from_either_version_of_control_groups(tmp_path: Path) -> None:
    proc, root = tmp_path / "cgroup", tmp_path / "root"
    (root / "memory" / "a").mkdir(parents=True)
    proc.write_text("4:cpu,memory:/a\n0::/b\n")
    assert oom_kills(proc, root) is None and oom_kills(tmp_path / "none", root) is None
    (root / "memory.events").write_text("low 0\noom 3\noom_kill 2\n")  # the path of the host isn't there in a container
    assert oom_kills(proc, root) == 2
    (root / "memory" / "a" / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 5\n")
    assert oom_kills(proc, root) == 5


def test_a_start_that_failed_and_hangs_on_is_seen() -> None:
    """Of a worker that died under `ulimit -v`: the server process stayed for minutes, also after SIGTERM."""
    assert given_up((LOGS / "worker_died.log").read_text()) and given_up((LOGS / "kv_too_small.log").read_text())
    assert not given_up((LOGS / "port_taken.log").read_text())


def test_no_secret_leaves_in_an_error() -> None:
    assert redact("token hf_abcdefghijk and sk-proj-123456789, Bearer abc.def api_key=xyz") == "token [redacted] and [redacted], Bearer [redacted] api_key=[redacted]"
    assert "hf_abcdefgh" not in diagnose("OSError: 401 for token hf_abcdefghijk", 1).line
