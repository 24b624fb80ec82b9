"""What the kernel says of processes that it killed for lack of memory."""

from __future__ import annotations

from pathlib import Path


def oom_kills(proc: Path = Path("/proc/self/cgroup"), root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """How many processes of this one's control group the kernel has killed for lack of memory; None where that can't be read.

    The group's `oom_kill` counts kills by its own limit and by the machine's. Version 2 tells it in `memory.events`, version 1 in `memory.oom_control`.
    """
    try:
        lines = proc.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            folder, name = root / "memory", "memory.oom_control"
        elif not controllers:
            folder, name = root, "memory.events"
        else:
            continue
        # In a container the path may be the host's, and the group's own files lie at the root.
        for place in (folder / path.lstrip("/"), folder):
            if (count := _count(place / name)) is not None:
                return count
    return None


def _count(file: Path) -> int | None:
    try:
        words = dict(line.split() for line in file.read_text(encoding="ascii").splitlines())
        return int(words["oom_kill"])
    except (OSError, ValueError, KeyError):
        return None
