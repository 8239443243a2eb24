"""The MCP server behind `/mcp`: it reads its calls from the web server, and asks the request who calls."""

import asyncio
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Send
from starlette.types import Scope as Connection

from gristmill.agents.ask.api import asking_of
from gristmill.agents.mcp.tools import Seat, make_server
from gristmill.serving import Caller, Problem, Services

ENDED = 5.0  # seconds for calls that run while the server ends


class McpServing:
    """The MCP server of one web server: a task of its own holds it open."""

    def __init__(self, services: Services) -> None:
        self._server = make_server(asking_of(services), find_seat)
        # names and origins are checked by our own gate, before this
        open_to_all = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._app = self._server.streamable_http_app(
            stateless_http=True, json_response=True, transport_security=open_to_all
        )
        self._is_over = asyncio.Event()
        self._is_open = asyncio.Event()
        self._holding = asyncio.create_task(self._hold())

    async def _hold(self) -> None:
        """The library wants the task that opens it to be the one that closes it."""
        async with self._server.session_manager.run():
            self._is_open.set()
            await self._is_over.wait()

    async def close(self) -> None:
        self._is_over.set()
        await asyncio.wait([self._holding], timeout=ENDED)
        self._holding.cancel()
        await asyncio.gather(self._holding, return_exceptions=True)

    async def handle(self, connection: Connection, receive: Receive, send: Send) -> None:
        await self._is_open.wait()
        await self._server.session_manager.handle_request(connection, receive, send)


def find_seat(ctx: Context[Any, Any]) -> Seat:
    """The caller of the request that brought this call."""
    request: Any = ctx.request_context.request
    caller: Caller | None = getattr(request.state, "caller", None) if request is not None else None
    if caller is None:
        raise Problem(401, "This needs a key: send it as “Authorization: Bearer …”.")
    return Seat(caller.bound_to, caller.choose_scope, caller.choose_view)
