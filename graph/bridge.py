"""The crew's only way to tools: one MCP server over stdio. Progress goes to the stream, questions to `interrupt()`, refusals come back as text."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.types import interrupt
from mcp import Client
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, ElicitRequestParams, ElicitResult, InputRequiredResult, TextContent, Tool

from ..tools.contract.errors import ServewrightError

Writer = Callable[[Any], None]
"""LangGraph's stream writer."""


class ToolServerGone(ServewrightError):
    """The tool server ended, or does not speak as it should. The campaign stops; its record is whole, and `resume` goes on."""


async def _asks_by_return(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    """Declares the capability; a server of the 2026 protocol returns its questions and never calls this."""
    return ElicitResult(action="decline")


@asynccontextmanager
async def tool_server(project: Path, thread: str, log: Path) -> AsyncIterator[Bridge]:
    """Start `servewright mcp serve all` for one campaign; its stderr is appended to `log`. Ends with the context."""
    command = ["-m", "servewright.graph.cli.main", "mcp", "serve", "all", "--transport", "stdio", "--project", str(project), "--thread", thread]
    parameters = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
    with log.open("a", encoding="utf-8") as errors:
        async with connect(stdio_client(parameters, errlog=errors), str(log)) as bridge:
            yield bridge


@asynccontextmanager
async def connect(target: Any, log: str) -> AsyncIterator[Bridge]:
    """A bridge to any target of `mcp.Client`: a transport, or a server object in this process. Raises `ToolServerGone`."""
    client = Client(target, elicitation_callback=_asks_by_return)
    try:
        await client.__aenter__()
        known = {tool.name: tool for tool in (await client.list_tools()).tools}
    except (MCPError, OSError, ExceptionGroup) as error:
        raise ToolServerGone(f"the tool server did not start ({_reason(error)}); its log: {log}") from None
    try:
        yield Bridge(client, known, log)
    finally:
        await client.__aexit__(None, None, None)


class Bridge:
    """Tools named `server_tool`, for nodes (`call`) and for models (`tools`)."""

    def __init__(self, client: Client, known: dict[str, Tool], log: str) -> None:
        self._client, self._known, self._log = client, known, log

    async def call(self, name: str, writer: Writer | None = None, **arguments: Any) -> dict[str, Any]:
        """Call a tool from a node. `ToolException` holds the server's refusal, `ToolServerGone` means that there is no server any more."""
        return (await self._call(name, arguments, writer)).structured_content or {}

    def tools(self, names: tuple[str, ...]) -> list[BaseTool]:
        """Those of `names` that the server has and declares read-only, as tools for a model."""
        allowed = [self._known[name] for name in names if name in self._known]
        return [self._as_tool(tool) for tool in allowed if tool.annotations is not None and tool.annotations.read_only_hint]

    def _as_tool(self, tool: Tool) -> BaseTool:
        async def run(runtime: ToolRuntime, **arguments: Any) -> str:
            return _text(await self._call(tool.name, arguments, runtime.stream_writer))

        return StructuredTool(name=tool.name, description=tool.description or tool.name, args_schema=tool.input_schema, coroutine=run, handle_tool_error=True)

    async def _call(self, name: str, arguments: dict[str, Any], writer: Writer | None) -> CallToolResult:
        context = copy_context()  # progress arrives on the reader's task, outside LangGraph's context

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            if writer is not None:
                context.copy().run(writer, {"tool": name, "done": progress, "total": total, "message": message or ""})

        try:
            result = await self._client.session.call_tool(name, arguments, progress_callback=tell, allow_input_required=True)
            while isinstance(result, InputRequiredResult):
                requests = {key: request.params.model_dump(mode="json") for key, request in (result.input_requests or {}).items() if request.params}
                answers = asked({"tool": name, "arguments": arguments}, requests)
                result = await self._client.session.call_tool(
                    name, arguments, progress_callback=tell, allow_input_required=True, input_responses=dict(answers), request_state=result.request_state
                )
        except (MCPError, OSError) as error:
            raise ToolServerGone(f"the tool server ended during {name} ({_reason(error)}); its log: {self._log}") from None
        if result.is_error:
            raise ToolException(_text(result))
        return result


def asked(about: dict[str, Any], requests: dict[str, Any]) -> dict[str, ElicitResult]:
    """Put a question before whoever runs the graph. The node runs again from its top with the answer, by when it may be asking something else
    (the first question was answered in another terminal): an answer about another thing is never taken for this one's."""
    while True:
        given = interrupt({"about": about, "requests": requests})
        if given["about"] == about:
            return {key: ElicitResult.model_validate(answer) for key, answer in given["responses"].items()}


def reply(question: dict[str, Any], responses: dict[str, Any]) -> dict[str, Any]:
    """The answer to a question that `asked` put: `responses` by request key."""
    return {"about": question["about"], "responses": responses}


def _text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
