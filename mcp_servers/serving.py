"""Runs a server over stdio or HTTP until its client goes or a signal comes, and then stops what it had started."""

from __future__ import annotations

import hmac
import os
import signal
import sys

import anyio
from mcp.server import MCPServer
from starlette.types import ASGIApp, Receive, Scope, Send

from .context import Desk

MOST_BYTES = 1024 * 1024
"""Of one request."""


def serve_stdio(server: MCPServer, desk: Desk) -> None:
    """Ends on EOF (the client has gone), SIGTERM or SIGINT."""
    anyio.run(_stdio, server, desk)


async def _stdio(server: MCPServer, desk: Desk) -> None:
    async def leave_on_signal() -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for number in signals:
                await anyio.to_thread.run_sync(_close, desk)
                # The SDK's reader blocks in a thread until a line or EOF comes; nothing else would end it.
                os._exit(128 + number)

    async with anyio.create_task_group() as group:
        group.start_soon(leave_on_signal)
        await server.run_stdio_async()
        await anyio.to_thread.run_sync(_close, desk)
        group.cancel_scope.cancel()


def serve_http(server: MCPServer, desk: Desk, host: str, port: int, token: str | None) -> None:
    """Streamable HTTP at `/mcp`. `token` None: no authorisation, on loopback only."""
    import uvicorn

    app: ASGIApp = server.streamable_http_app(host=host, max_request_body_size=MOST_BYTES)
    if token is not None:
        app = BearerOnly(app, token)
    config = uvicorn.Config(app, host=host, port=port, log_level="warning", timeout_graceful_shutdown=5)
    print(f"serving MCP on http://{host}:{port}/mcp", file=sys.stderr, flush=True)
    try:
        uvicorn.Server(config).run()
    finally:
        _close(desk)


class BearerOnly:
    """Answers 401 to every HTTP request that doesn't carry the token."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self.app, self._expected = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._carries(scope):
            await self.app(scope, receive, send)
            return
        from starlette.responses import JSONResponse

        refusal = JSONResponse({"error": "unauthorized", "error_description": "send the server's token as 'Authorization: Bearer TOKEN'"}, 401, {"WWW-Authenticate": "Bearer"})
        await refusal(scope, receive, send)

    def _carries(self, scope: Scope) -> bool:
        shown = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(shown) == 1 and hmac.compare_digest(shown[0], self._expected)


def _close(desk: Desk) -> None:
    if not desk.close():
        print("servewright mcp: the engines did not stop in time; their keepers go on with it", file=sys.stderr, flush=True)
