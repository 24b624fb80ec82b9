"""The seven servers by name, and all of them as one."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

from mcp.server import MCPServer
from mcp.server.mcpserver.tools import Tool

from ..tools.contract.errors import BadInput
from .context import Desk
from .factory import make_server
from .guides import add_prompts
from .reading import add_resources

NAMES = ("campaign", "config", "workspace", "experiment", "traffic", "telemetry", "ledger")
ALL = "Measures and tunes an LLM serving endpoint by experiment, and records no gain that it has not tried to refute. Tools are named server_tool. "


def make(name: str, desk: Desk) -> MCPServer:
    """The server of that name, or `all`: every server's tools in one, named `server_tool`. Raises `BadInput`."""
    if name != "all" and name not in NAMES:
        raise BadInput("server", name, f"one of {', '.join(NAMES)}, or all")
    chosen = NAMES if name == "all" else (name,)
    tools = [tool for one in chosen for tool in tools_of(one, desk, prefixed=name == "all")]
    texts = [_module(one).INSTRUCTIONS for one in chosen]
    instructions = texts[0] if name != "all" else ALL + " ".join(f"{one}: {text}" for one, text in zip(chosen, texts, strict=True))
    server = make_server(f"servewright-{name}", instructions, tools)
    add_resources(server, desk, chosen)
    if name == "all":
        add_prompts(server)
    return server


def tools_of(name: str, desk: Desk, *, prefixed: bool) -> list[Tool]:
    """One server's tools."""
    build: Callable[[Desk, bool], list[Tool]] = getattr(_module(name), f"{name}_tools")
    return build(desk, prefixed)


def _module(name: str) -> ModuleType:
    return import_module(f".{name}", __package__)
