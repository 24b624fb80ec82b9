"""Who may reach a server over HTTP. Light: it is asked before anything heavy is imported."""

from __future__ import annotations

import os
from ipaddress import ip_address

from ..tools.contract.errors import BadInput

SHORTEST_TOKEN = 16


def token_from(environment: str | None, host: str, no_auth: bool) -> str | None:
    """The bearer token that clients must show. Raises `BadInput` where the server would be open to others than this machine's user."""
    if environment is not None:
        token = os.environ.get(environment, "")
        if len(token) < SHORTEST_TOKEN:
            raise BadInput("--token-env", environment, f"the name of an environment variable that holds a token of at least {SHORTEST_TOKEN} characters")
        return token
    if not no_auth:
        raise BadInput("--token-env", "(not given)", "the name of an environment variable that holds the bearer token; on loopback --no-auth serves without one")
    if not loopback(host):
        raise BadInput("--no-auth", host, "a loopback host such as 127.0.0.1; anything else needs --token-env")
    return None


def loopback(host: str) -> bool:
    """The host can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
