"""How every server is made: strict tools, errors that say what to do instead, answers that are small and carry no home path."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import ConfigDict, ValidationError

from ..tools.contract.errors import ServewrightError
from .jobs import mask


class StrictTool(Tool):
    """Refuses arguments that it doesn't know, and masks every error that isn't meant for the caller."""

    async def run(self, arguments: dict[str, Any], context: Any, convert_result: bool = False) -> Any:
        try:
            result = await super().run(arguments, context, convert_result=convert_result)
        except UnexpectedToolError as error:
            cause = error.__cause__ or error
            raise ToolError(scrub(str(cause) if isinstance(cause, ServewrightError) else mask(cause))) from None
        except ToolError as error:
            cause = error.__cause__
            raise ToolError(scrub(problems(cause) if isinstance(cause, ValidationError) else str(cause or error))) from None
        return compact(result) if isinstance(result, CallToolResult) else result


class Toolbox:
    """Collects one server's tools."""

    def __init__(self, server: str, prefixed: bool) -> None:
        self.tools: list[Tool] = []
        self._prefix = f"{server}_" if prefixed else ""

    def tool(
        self, title: str, *, name: str = "", reads: bool = False, destroys: bool = False, repeatable: bool = True, outside: bool = False
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Register a function as a tool; its docstring is what the model reads. `reads`: changes nothing; `destroys`: can't be undone;
        `repeatable`: a second call with the same arguments changes nothing more; `outside`: starts processes beyond this server."""

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            hints = ToolAnnotations(title=title, read_only_hint=reads, destructive_hint=destroys, idempotent_hint=repeatable, open_world_hint=outside)
            made = StrictTool.from_function(
                function, name=self._prefix + (name or function.__name__), title=title, description=inspect.getdoc(function), annotations=hints
            )
            base = made.fn_metadata.arg_model
            strict = type(base.__name__, (base,), {"model_config": ConfigDict(extra="forbid"), "__module__": base.__module__})
            made.fn_metadata.arg_model = strict
            made.parameters = strict.model_json_schema(by_alias=True)
            self.tools.append(made)
            return function

        return register


def make_server(name: str, instructions: str, tools: Sequence[Tool]) -> MCPServer:
    """One server of ours, quiet but for warnings on stderr."""
    return MCPServer(name, title=name, instructions=instructions, version=version("servewright"), tools=list(tools), log_level="WARNING")


def problems(error: ValidationError) -> str:
    """All problems of the arguments, one a line, without pydantic's links: field, what is wrong, what was given."""
    found = error.errors(include_url=False)
    lines = []
    for one in found[:12]:
        where = ".".join(str(part) for part in one["loc"]) or "arguments"
        given = "" if one["type"] in ("missing", "extra_forbidden") else f" (given: {json.dumps(one['input'], default=str)[:120]})"
        message = "no such argument here: leave it out or correct its spelling" if one["type"] == "extra_forbidden" else one["msg"].removeprefix("Value error, ")
        lines.append(f"- {where}: {message}{given}")
    more = f"\n- and {len(found) - 12} more" if len(found) > 12 else ""
    return "These arguments can't be used; correct them and call again:\n" + "\n".join(lines) + more


def compact(result: CallToolResult) -> CallToolResult:
    """The text of an answer is its structured content in one line: half the tokens of an indented dump."""
    if result.structured_content is None:
        return result
    text = scrub(json.dumps(result.structured_content, separators=(",", ":"), ensure_ascii=False))
    return result.model_copy(update={"structured_content": json.loads(text), "content": [TextContent(type="text", text=text)]})


def scrub(text: str) -> str:
    """The user's home folder as `~`."""
    home = str(Path.home())
    return text if home == "/" else text.replace(home + "/", "~/")
