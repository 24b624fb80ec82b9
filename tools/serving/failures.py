"""Why an engine did not serve, read from its log: the kind, the line that says so, and what to do."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from ..contract.errors import FailureKind

TAIL_BYTES = 400_000
"""A start's log is far shorter; of a long run the end says why it died."""


@dataclass(frozen=True)
class Diagnosis:
    kind: FailureKind
    line: str
    hint: str


@dataclass(frozen=True)
class _Rule:
    kind: FailureKind
    pattern: re.Pattern[str]
    hint: str


def _rule(kind: FailureKind, pattern: str, hint: str) -> _Rule:
    return _Rule(kind, re.compile(pattern, re.IGNORECASE), hint)


_RULES: tuple[_Rule, ...] = (
    _rule("port_taken", r"address already in use|errno 98|port \d+ is already in use", "stop what listens there, or let Servewright choose the port"),
    _rule("bad_flag", r"^(?:[\w ./-]+: )?error: (?:unrecognized arguments|argument |the following arguments|.*is not usable; expected)", "see the engine's own help, or leave the argument out"),
    _rule(
        "out_of_memory",
        r"cuda out of memory|outofmemoryerror|cuda error: out of memory|hip out of memory|defaultcpuallocator: can't allocate|cannot allocate memory|\bout of memory\b|memoryerror",
        "less gpu_memory_utilization, a shorter max_model_len, fewer max_num_seqs, or more devices",
    ),
    _rule(
        "out_of_memory",
        r"is less than requested memory for kv",
        "ask for less KV cache (VLLM_CPU_KVCACHE_SPACE, kv_cache_memory_bytes), or free the device's memory",
    ),
    _rule(
        "out_of_memory",
        r"no available memory for the cache blocks|larger than the available kv cache memory|kv cache is needed, which is larger|larger than the maximum number of tokens that can be stored in kv cache"
        r"|free memory on device .* is less than desired|not enough memory|insufficient memory|exceeds .*available memory|available memory .* is less than",
        "the KV cache doesn't hold one request: shorter max_model_len, more memory for the cache (gpu_memory_utilization; VLLM_CPU_KVCACHE_SPACE on the CPU)",
    ),
    _rule(
        "driver_missing",
        r"failed to infer device type|no cuda gpus are available|nvidia driver (?:on your system )?is too old|found no nvidia driver|cuda driver version is insufficient|libcuda\.so\.1: cannot open",
        "install a GPU driver that this build of the engine takes, or a build for the CPU",
    ),
    _rule(
        "bad_model",
        r"invalid repository id or local directory|hfvalidationerror|is not a local folder|does not appear to have a file named|can't load (?:the )?(?:tokenizer|config)|repositorynotfounderror|gatedrepoerror"
        r"|localentrynotfounderror|offlinemodeisenabled|model architectures? .* (?:is|are) not supported|cannot find the config file for|unknown quantization method|quantization .* not supported"
        r"|not supported for the current (?:gpu|platform)|trust_remote_code=true|no such model|unrecognized model|error while deserializing|safetensorerror",
        "check model.path: a complete folder with config.json, weights and tokenizer, of an architecture and quantisation this engine knows",
    ),
    _rule("bad_flag", r"validation errors? for \w*config|valueerror: .*(?:must be|cannot be|is not supported|greater than|larger than)", "the engine refused this combination of arguments"),
    _rule("driver_missing", r"nccl (?:error|timeout)|watchdog caught collective operation timeout", "devices don't reach each other: check NVLink or PCIe, try NCCL_P2P_DISABLE=1"),
    _rule("died", r"worker proc .* died unexpectedly", "a worker ended without a word: often for lack of host memory (see `dmesg`), or a limit (`ulimit -a`)"),
    _rule("not_installed", r"no module named|modulenotfounderror|packagenotfounderror|importerror: ", "install the engine anew: servewright engines install"),
)
_PREFIX = re.compile(r"^(?:\((?:\w+) pid=\d+\)\s*)?(?:(DEBUG|INFO|WARNING|ERROR|CRITICAL) [\d-]+ [\d:.]+ \[[^\]]*\]\s*)?")
_CODE = re.compile(r"^(?:raise |File \"|return |with |await |\^+$)|\($")
"""Lines of a traceback that hold code, not the message."""
_LAST = re.compile(r"^(?:[\w.]*(?:Error|Exception|Interrupt)\b.*|.*\b(?:error|fatal|killed|aborted)\b.*)$", re.IGNORECASE)
_GIVEN_UP = re.compile(r"EngineCore failed to start|Engine core initialization failed")
_SECRETS = re.compile(r"\b(?:hf_|sk-|ghp_|xox[bap]-)[A-Za-z0-9_-]{8,}|(?<=Bearer )\S+|(?<=api[_-]key[=:])\S+", re.IGNORECASE)
_AFTERMATH = re.compile(r"see root cause above|resource_tracker|leaked shared_memory|leaked semaphore", re.IGNORECASE)


def diagnose(log: str, exit_code: int | None = None, *, kernel_killed: bool = False) -> Diagnosis:
    """The most telling line of a log. `exit_code` as `subprocess` gives it, where the engine ended by itself.

    `kernel_killed`: the kernel counted a process that it killed for lack of memory meanwhile. Without that, or a line of the log, SIGKILL says nothing of memory.
    """
    lines: list[str] = []
    telling: list[int] = []
    complaint: str | None = None
    for raw in log.splitlines():
        match = _PREFIX.match(raw)
        line = raw[match.end() :].strip() if match else raw.strip()
        if line and not _CODE.search(line) and not _AFTERMATH.search(line):
            if not (match and match[1] in ("DEBUG", "INFO", "WARNING")):
                telling.append(len(lines))
            if match and match[1] in ("ERROR", "CRITICAL"):
                complaint = line
            lines.append(line)
    for rule in _RULES:
        for index in telling:
            line = lines[index]
            if rule.pattern.search(line):
                # pydantic says what is wrong on the line after its headline
                told = f"{line} {lines[index + 1]}" if re.search(r"validation errors? for", line) and index + 1 < len(lines) else line
                return Diagnosis(rule.kind, _short(told), rule.hint)
    if exit_code == -signal.SIGKILL and kernel_killed:
        return Diagnosis("out_of_memory", "killed by the kernel for lack of host memory (signal 9)", "more host memory or a higher limit; fewer max_num_seqs or a smaller cache on the CPU")
    if exit_code == -signal.SIGKILL:
        return Diagnosis("died", "killed by signal 9 (by a person, a supervisor or the kernel's out-of-memory killer)", "`dmesg` tells whether it was the kernel")
    last = next((lines[index] for index in reversed(telling) if _LAST.match(lines[index])), complaint)
    if exit_code is None:
        return Diagnosis("unknown", _short(last or (lines[-1] if lines else "the log is empty")), "")
    # a banner is no reason
    return Diagnosis("died", _short(last) if last else f"ended without a word ({_ending(exit_code)})", _ending(exit_code) if last else "")


def _ending(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"signal {-exit_code}, {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"signal {-exit_code}"


def given_up(log: str) -> bool:
    """Whether the engine says that it failed to start. vLLM's server process may hang on after that instead of ending."""
    return _GIVEN_UP.search(log) is not None


def redact(text: str) -> str:
    """Without what looks like a token or key."""
    return _SECRETS.sub("[redacted]", text)


def _short(line: str) -> str:
    line = redact(line)
    return line if len(line) <= 300 else line[:297] + "..."
