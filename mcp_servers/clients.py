"""How to tell a client about the servers: the entry for its own settings file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

Client = Literal["claude-code", "claude-desktop", "cursor", "vscode", "zed"]

WHERE: dict[Client, str] = {
    "claude-code": ".mcp.json in the repository",
    "claude-desktop": "claude_desktop_config.json",
    "cursor": ".cursor/mcp.json in the repository",
    "vscode": ".vscode/mcp.json in the repository",
    "zed": "settings.json",
}
"""Client -> file that the entry belongs into."""


def entry(client: Client, project: Path, thread: str | None) -> dict[str, Any]:
    """The JSON to put (or merge) there. The servers run with this Python, whatever is on the client's path."""
    arguments = ["-m", "servewright.graph.cli.main", "mcp", "serve", "all", "--project", str(project.resolve())]
    command = {"command": sys.executable, "args": arguments + (["--thread", thread] if thread else [])}
    match client:
        case "vscode":
            return {"servers": {"servewright": {"type": "stdio", **command}}}
        case "zed":
            return {"context_servers": {"servewright": {"source": "custom", **command, "env": {}}}}
        case _:
            return {"mcpServers": {"servewright": command}}
