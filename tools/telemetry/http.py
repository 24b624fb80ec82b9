"""Small requests to a server on this machine."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from ..contract.errors import EngineFailure


def request(url: str, path: str, *, method: str = "GET", timeout_s: float = 10.0) -> tuple[int, bytes]:
    """(status, body). Raises `EngineFailure("unreachable", ...)`."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout_s)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        raise EngineFailure("unreachable", f"{method} {url}{path}: {error.__class__.__name__} {error}".rstrip()) from None
    finally:
        connection.close()


def get_json(url: str, path: str, *, timeout_s: float = 10.0) -> Any:
    """The JSON answer. Raises `EngineFailure("unreachable", ...)` also for other statuses and for what isn't JSON."""
    status, body = request(url, path, timeout_s=timeout_s)
    if status != 200:
        raise EngineFailure("unreachable", f"GET {url}{path}: status {status}")
    try:
        return json.loads(body)
    except ValueError:
        raise EngineFailure("unreachable", f"GET {url}{path}: the answer is not JSON") from None
