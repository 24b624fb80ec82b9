"""`servewright mcp`: the tools as MCP servers, for IDE assistants and for the crew itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

app = typer.Typer(help="Serve the tools to MCP clients.", no_args_is_help=True, pretty_exceptions_enable=False)


@app.command("list")
def list_servers() -> None:
    """The servers and their tools."""
    from ...mcp_servers.context import Desk
    from ...mcp_servers.servers import NAMES, tools_of

    desk = Desk(Path(".servewright"))
    for name in NAMES:
        typer.echo(f"{name}: {', '.join(tool.name for tool in tools_of(name, desk, prefixed=False))}")
    typer.echo("all: every server's tools in one, named server_tool")


@app.command("config")
def client_config(
    client: Annotated[Literal["claude-code", "claude-desktop", "cursor", "vscode", "zed"], typer.Argument(help="The client to configure.", show_default=False)],
    *,
    project: Annotated[Path, typer.Option(help="The project's folder.")] = Path(".servewright"),
    thread: Annotated[str | None, typer.Option(help="The investigation to work on.")] = None,
) -> None:
    """Print a client's settings for these servers (stdout) and the file they belong into (stderr)."""
    import json

    from ...mcp_servers.clients import WHERE, entry

    typer.echo(f"put this into {WHERE[client]}:", err=True)
    typer.echo(json.dumps(entry(client, project, thread), indent=2))


@app.command()
def serve(
    name: Annotated[str, typer.Argument(help="One of the servers that 'servewright mcp list' names, or all.")],
    *,
    project: Annotated[Path, typer.Option(help="The project's folder.")] = Path(".servewright"),
    thread: Annotated[str | None, typer.Option(help="The investigation to work on.")] = None,
    endpoint: Annotated[Path | None, typer.Option(help="Endpoint file, to begin a new investigation under --thread.")] = None,
    transport: Annotated[Literal["stdio", "http"], typer.Option(help="stdio: the client starts this command; http: streamable HTTP at /mcp.")] = "stdio",
    host: Annotated[str, typer.Option(help="Address to listen on (http).")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on (http).")] = 8765,
    token_env: Annotated[str | None, typer.Option(help="Environment variable that holds the bearer token clients must send (http).")] = None,
    no_auth: Annotated[bool, typer.Option("--no-auth", help="Serve without a token; on loopback only (http).")] = False,
) -> None:
    """Serve one server's tools, or all of them, until the client goes."""
    from ...mcp_servers.access import token_from
    from ...tools.contract.errors import BadInput

    if endpoint is not None and thread is None:
        raise BadInput("--endpoint", str(endpoint), "a --thread beside it, which names the investigation")
    token = token_from(token_env, host, no_auth) if transport == "http" else None

    from ...mcp_servers.context import Desk
    from ...mcp_servers.servers import make
    from ...mcp_servers.serving import serve_http, serve_stdio

    desk = Desk(project, thread, endpoint)
    server = make(name, desk)
    if transport == "http":
        serve_http(server, desk, host, port, token)
    else:
        serve_stdio(server, desk)
