"""The server between two steps: emptying its cache, and waiting until it is idle."""

from __future__ import annotations

import http.client
import time
from urllib.parse import urlsplit

from ..contract.errors import EngineFailure

GAUGES = (b"vllm:num_requests_running", b"vllm:num_requests_waiting", b"sglang:num_running_reqs", b"sglang:num_queue_reqs")
BLIND_WAIT_S = 0.5


def ask(url: str, method: str, path: str, body: bytes | None = None, timeout_s: float = 10) -> tuple[int, bytes]:
    """One plain request: status and body. Raises `OSError` or `http.client.HTTPException` where there is no answer."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=timeout_s)
    try:
        connection.request(method, parts.path.rstrip("/").removesuffix("/v1") + path, body, {"Content-Type": "application/json"} if body else {})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def reset_cache(url: str, path: str) -> None:
    """Empty the prefix cache. Raises `EngineFailure`: without it the step would not be measured under its cache policy."""
    try:
        status, _ = ask(url, "POST", path)
    except (OSError, http.client.HTTPException) as error:
        raise EngineFailure("unreachable", f"POST {path}: {type(error).__name__}") from None
    if not 200 <= status < 300:
        raise EngineFailure("unknown", f"POST {path} answered {status}", "the engine must offer a way to empty its prefix cache (vLLM: VLLM_SERVER_DEV_MODE=1), or use cache_policy steady")


def settle(url: str, patience_s: float, *, left_open: bool) -> bool:
    """Wait (wall seconds) until the server says that nothing runs or waits; True when it did.

    A server without such gauges gets a short rest instead, where the client left requests open (`left_open`).
    """
    end = time.monotonic() + patience_s
    while True:
        try:
            status, text = ask(url, "GET", "/metrics", timeout_s=5)
        except (OSError, http.client.HTTPException):
            return False
        busy = [float(line.rpartition(b" ")[2]) for line in text.splitlines() if line.startswith(GAUGES) and not line.startswith(b"vllm:num_requests_waiting_by")]
        if status != 200 or not busy:
            time.sleep(BLIND_WAIT_S if left_open else 0)
            return False
        if sum(busy) == 0:
            return True
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
