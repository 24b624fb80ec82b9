"""Resources: what a client may read by address."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from ..tools.contract.endpoint import EngineKind
from ..tools.contract.errors import BadInput, ServewrightError
from ..tools.knobs.catalogue import catalogue
from .context import Desk
from .factory import scrub
from .ledger import show_entry

JSON = "application/json"


def add_resources(server: MCPServer, desk: Desk, servers: Sequence[str]) -> None:
    """`ledger://entries/{seq}` with the ledger's server, `knob://{engine}/{name}` with config's."""

    def entry(seq: str) -> str:
        if not seq.isdecimal():
            raise ResourceNotFoundError(f"ledger://entries/{seq}: entries have numbers")
        try:
            return scrub(show_entry(desk.existing_project(), int(seq)).model_dump_json())
        except BadInput as error:
            raise ResourceNotFoundError(scrub(str(error))) from None
        except ServewrightError as error:
            raise ResourceError(scrub(str(error))) from None

    def knob(engine: EngineKind, name: str) -> str:
        try:
            return json.dumps(catalogue(engine).knob(name).model_dump(mode="json", exclude={"no_effect"}))  # shams are made of settings without effect
        except BadInput as error:
            raise ResourceNotFoundError(str(error)) from None

    if "ledger" in servers:
        server.resource("ledger://entries/{seq}", name="ledger entry", description="One entry of the project's record, by number.", mime_type=JSON)(entry)
    if "config" in servers:
        server.resource(
            "knob://{engine}/{name}", name="engine argument", description="One engine argument (sim, vllm): type, bounds, family, meaning.", mime_type=JSON
        )(knob)
