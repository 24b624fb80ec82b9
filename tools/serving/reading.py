"""Reads a serve command as an endpoint: split like a shell splits it, never run."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field

from ..contract.base import Scalar
from ..contract.errors import BadInput
from ..knobs.catalogue import Catalogue, catalogue
from ..knobs.values import coerce

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_SHORT = {"-tp": "tensor_parallel_size", "-pp": "pipeline_parallel_size", "-dp": "data_parallel_size", "-q": "quantization", "-sc": "speculative_config", "-cc": "compilation_config", "-ac": "attention_config"}
_ALIASES = {"device_memory_utilization": "gpu_memory_utilization"}
_GPUS = (("h200", "h200-sxm"), ("h100", "h100-sxm"), ("a100", "a100-sxm"), ("l40s", "l40s"))


@dataclass
class Command:
    """What a serve command says. `left_out`: what Servewright sets itself, or may not take over, and why."""

    model: str
    served_name: str | None = None
    args: dict[str, Scalar] = field(default_factory=dict)
    env: dict[str, str] = field(default_factory=dict)
    devices: int | None = None
    left_out: list[str] = field(default_factory=list)


def read_command(text: str) -> Command:
    """`[NAME=value ...] vllm serve MODEL [flags]`, or `python -m vllm.entrypoints.openai.api_server --model MODEL [flags]`. Raises `BadInput`."""
    try:
        words = shlex.split(text.replace("\\\n", " "))
    except ValueError as error:
        raise BadInput("--from", text, f"a command that a shell could split ({error})") from None
    if any(word in ("&&", "||", "|", "&", ">", "<") or word.endswith(";") for word in words):
        raise BadInput("--from", text, "one serve command, without pipes and further commands")
    command, known = Command(model=""), catalogue("vllm")
    while words and _ASSIGNMENT.fullmatch(words[0]):
        _variable(words.pop(0), command, known)
    words = _after_program(words, text)
    positional: list[str] = []
    while words:
        word = words.pop(0)
        if not word.startswith("-"):
            positional.append(word)
            continue
        _flag(word, words, command, known)
    if len(positional) > 1:
        raise BadInput("--from", " ".join(positional[1:]), "one model, and flags that start with --")
    command.model = positional[0] if positional else command.model
    if not command.model:
        raise BadInput("--from", text, "a model: vllm serve MODEL")
    return command


def _after_program(words: list[str], text: str) -> list[str]:
    for index, word in enumerate(words[:6]):
        if word == "serve" and index and words[index - 1].rpartition("/")[2] == "vllm":
            return words[index + 1 :]
        if word == "vllm.entrypoints.openai.api_server" and index and words[index - 1] == "-m":
            return words[index + 1 :]
    raise BadInput("--from", text, "vllm serve MODEL [flags], or python -m vllm.entrypoints.openai.api_server --model MODEL [flags]")


def _variable(word: str, command: Command, known: Catalogue) -> None:
    name, _, value = word.partition("=")
    if name == "CUDA_VISIBLE_DEVICES":
        command.devices = len([part for part in value.split(",") if part.strip()]) or None
    elif name in known.variables:
        command.env[name] = str(coerce(known.variables[name], value, f"--from: {name}"))
    else:
        command.left_out.append(f"{name}: not a variable that Servewright passes on")


def _flag(word: str, rest: list[str], command: Command, known: Catalogue) -> None:
    option, equals, value = word.partition("=")
    name = _SHORT.get(option, option.lstrip("-").replace("-", "_"))
    name = _ALIASES.get(name, name)
    switched_off = name.startswith("no_") and name not in known.knobs and name[3:] in known.knobs
    knob = known.knob(name[3:] if switched_off else name, "--from")
    if knob.kind == "bool" and not equals:
        taken: Scalar = not switched_off
    elif equals:
        taken = value
    elif knob.many:
        values: list[str] = []
        while rest and not rest[0].startswith("--"):
            values.append(rest.pop(0))
        taken = " ".join(values)
    elif rest:
        taken = rest.pop(0)
    else:
        raise BadInput("--from", word, "a value after it")
    if knob.name == "model":
        command.model = str(taken)
    elif knob.name == "served_model_name":
        command.served_name = str(taken).split()[0] if str(taken).split() else None
    elif knob.access == "reserved":
        secret = knob.name in ("api_key", "hf_token")
        command.left_out.append(f"{knob.name}{'' if secret else '=' + str(taken)}: " + ("a secret; keep it out of files" if secret else "Servewright sets it itself, on a server of its own"))
    else:
        command.args[knob.name] = coerce(knob, taken, f"--from: --{knob.name.replace('_', '-')}")


def endpoint_yaml(command: Command) -> str:
    """An endpoint file with every guess marked `# guess`."""
    name = re.sub(r"[^a-z0-9._-]+", "-", (command.served_name or command.model).lower().rpartition("/")[2]).strip("-._")[:63] or "endpoint"
    parallel = int(command.args.get("tensor_parallel_size", 1)) * int(command.args.get("pipeline_parallel_size", 1)) * int(command.args.get("data_parallel_size", 1))
    profile = next((profile for part, profile in _GPUS if part in command.model.lower()), "h100-sxm")
    lines = [
        "# Made by `servewright init`. Look at every line marked `# guess`: figures are about what stands here.",
        f"name: {name}",
        "engine:",
        "  kind: vllm",
        "  # installation: /path/to/venv   # guess: the default installation (servewright engines list); name the venv that serves today",
        *_mapping("args", command.args),
        *_mapping("env", command.env),
        "model:",
        f"  name: {_scalar(command.served_name or command.model)}" + ("" if command.served_name else "   # guess: the name clients use"),
        f"  path: {_scalar(command.model)}",
        "hardware:",
        f"  profile: {profile}   # guess: which device; cpu, h100-sxm, a100-sxm, l40s",
        f"  gpus: {max(parallel, 1)}" + ("   # guess: from the parallel sizes" if command.devices is None else f"   # guess: {command.devices} were visible"),
        "sla:",
        "  ttft_s: 1.0   # guess: what your users bear until the first token",
        "  tpot_s: 0.05   # guess: seconds a token after it",
        "  attainment: 0.95   # guess: share of requests that must keep both",
        "workload:",
        "  trace: trace.jsonl   # guess: your own traffic, recorded (arrival times and lengths; servewright trace --help)",
        "  workload_class: production   # guess: declared_synthetic where the trace is made up",
        "measurement:",
        "  cache_policy: steady   # guess: cold, where traffic shares no prefixes over time",
        "budget:",
        "  launches: 60   # guess",
        "  wall_s: 14400   # guess: four hours",
        "permissions:",
        "  lossy: ask   # guess: quantisation and the like wait for your yes",
    ]
    lines += [f"# left out: {' '.join(reason.split())}" for reason in command.left_out]
    return "\n".join(lines) + "\n"


def _mapping(name: str, values: dict[str, Scalar] | dict[str, str]) -> list[str]:
    return [f"  {name}:", *(f"    {key}: {_scalar(values[key])}" for key in sorted(values))] if values else [f"  {name}: {{}}"]


def _scalar(value: Scalar) -> str:
    return json.dumps(value) if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z/~][A-Za-z0-9_./~-]*", value) or value.lower() in ("true", "false", "yes", "no", "on", "off", "null", "y", "n", "none") else value
