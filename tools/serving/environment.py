"""The environment an engine gets: what it needs to run, nothing of the user's secrets."""

from __future__ import annotations

import os

_PASSED = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "XDG_CACHE_HOME",
    "HF_HOME", "HF_HUB_CACHE", "VLLM_CACHE_ROOT", "SSL_CERT_FILE", "SERVEWRIGHT_CACHE",
)  # fmt: skip


def base_environment() -> dict[str, str]:
    """Variables of this process that engines need."""
    return {name: value for name in _PASSED if (value := os.environ.get(name))}
