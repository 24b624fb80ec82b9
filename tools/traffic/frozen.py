"""The frozen form of a workload: one file named by its content, whose bodies are mapped, never held on the heap.

Layout: magic (16 bytes); bodies one after another, padded to 8 bytes; length of the header (8 bytes, little-endian), header (canonical JSON, padded with spaces),
columns (little-endian, each padded to 8 bytes); length of all from the header's length on (8 bytes). The digest is the SHA-256 of the whole file.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..contract.base import canonical
from ..contract.errors import BadInput, unwritable
from .prompts import TokenRange
from .workload import Workload

MAGIC = b"servewright-wl1\n"
COLUMNS = {
    "at_s": "<f8",
    "path": "|u1",
    "expected_prompt_tokens": "<i4",
    "expected_output_tokens": "<i4",
    "exact": "|b1",
    "session": "<i4",
}


class MappedBodies(Sequence[memoryview]):
    """Bodies of a frozen file. `ends[i]` is where body i ends, from the first body's start."""

    def __init__(self, view: memoryview, ends: NDArray[np.uint64]) -> None:
        self._view, self._ends = view, [0, *ends.tolist()]

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, index: int) -> memoryview:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._view[self._ends[index] : self._ends[index + 1]]


def pieces(workload: Workload) -> Iterator[bytes | memoryview]:
    """The frozen file's content, piece by piece; bodies are made one at a time and not kept."""
    yield MAGIC
    ends = np.zeros(workload.requests, "<u8")
    end = 0
    for index in range(workload.requests):
        body = workload.bodies[index]
        end += len(body)
        ends[index] = end
        yield body
    yield bytes(-end % 8)
    foot = _foot(workload, ends)
    yield foot
    yield len(foot).to_bytes(8, "little")


def content_digest(workload: Workload) -> str:
    """SHA-256 (hex) of what `freeze` would write."""
    made = hashlib.sha256()
    for piece in pieces(workload):
        made.update(piece)
    return made.hexdigest()


def freeze(workload: Workload, folder: Path) -> Path:
    """Write `<digest>.workload` into the folder, whole or not at all; a file that is there already is kept. Raises `ServewrightError` where there is no room."""
    try:
        return _write(workload, folder)
    except OSError as error:
        raise unwritable(folder, "the frozen workload", error) from None


def _write(workload: Workload, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    made = hashlib.sha256()
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".partial", delete=False) as stream:
        partial = Path(stream.name)
        try:
            for piece in pieces(workload):
                made.update(piece)
                stream.write(piece)
            stream.flush()
            os.fsync(stream.fileno())
        except BaseException:
            partial.unlink()
            raise
    target = folder / f"{made.hexdigest()}.workload"
    if target.is_file():
        partial.unlink()
    else:
        partial.replace(target)
    return target


def open_frozen(path: Path) -> Workload:
    """Map a frozen workload. Raises `BadInput` where it isn't one, or was altered (its content must have the digest that its name says)."""
    try:
        with path.open("rb") as stream:
            whole = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        raise BadInput("workload", str(path), f"a readable frozen workload ({error})") from None
    if bytes(whole[:16]) != MAGIC:
        raise BadInput("workload", str(path), "a file that `freeze` made")
    found = hashlib.sha256(whole).hexdigest()
    if path.stem != found:
        raise BadInput("workload", str(path), f"unaltered content (its digest is {found})")
    foot = len(whole) - 8 - int.from_bytes(whole[-8:], "little")
    size = int.from_bytes(whole[foot : foot + 8], "little")
    header: dict[str, Any] = json.loads(bytes(whole[foot + 8 : foot + 8 + size]))
    at, columns = foot + 8 + size, {}
    for name, dtype in {**COLUMNS, "ends": "<u8"}.items():
        columns[name] = np.frombuffer(whole, dtype, header["count"], at)
        at += -(-columns[name].nbytes // 8) * 8
    ends = columns.pop("ends")
    workload = Workload(
        **columns,
        paths=tuple(header["paths"]),
        held_out=header["held_out"],
        tokens=TokenRange(**header["tokens"]) if header["tokens"] else None,
        about=header["about"],
        bodies=MappedBodies(whole[len(MAGIC) :], ends),
    )
    workload.__dict__["digest"] = found
    return workload


def _foot(workload: Workload, ends: NDArray[np.uint64]) -> bytes:
    tokens = workload.tokens
    header = canonical(
        {
            "about": workload.about,
            "count": workload.requests,
            "held_out": workload.held_out,
            "paths": workload.paths,
            "tokens": {"low": tokens.low, "span": tokens.span, "digits": tokens.digits} if tokens else None,
        }
    )
    header += b" " * (-len(header) % 8)
    columns = [np.ascontiguousarray(getattr(workload, name), dtype).tobytes() for name, dtype in COLUMNS.items()] + [ends.tobytes()]
    return len(header).to_bytes(8, "little") + header + b"".join(column + bytes(-len(column) % 8) for column in columns)
