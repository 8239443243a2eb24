"""MCP on the web server: `/mcp`, with the key, the role and the scope of the caller, and no session on the server."""

import asyncio
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response
from starlette.types import Receive, Scope, Send

from gristmill.serving import Viewer, services_of

if TYPE_CHECKING:
    from gristmill.agents.mcp.serving import McpServing

ROUTES = APIRouter()


class Delegated(Response):
    """An answer that the MCP server writes itself."""

    def __init__(self, serving: "McpServing") -> None:
        super().__init__()
        self._serving = serving

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._serving.handle(scope, receive, send)


@ROUTES.api_route("/mcp", methods=["GET", "POST", "DELETE"])
async def serve_mcp(request: Request, caller: Viewer) -> Response:
    serving = await asyncio.to_thread(load_serving)  # others are answered while the first call waits for it
    return Delegated(services_of(request).keep(serving, serving))


def load_serving() -> "type[McpServing]":
    from gristmill.agents.mcp.serving import McpServing  # noqa: PLC0415 half a second, and most servers never need it

    return McpServing
