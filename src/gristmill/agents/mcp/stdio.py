"""Serves the tools of MCP over standard input and output, to the person at this machine."""

from gristmill.agents.ask.service import AskService
from gristmill.scopes import Scope


async def serve_stdio(asking: AskService, scope: Scope) -> None:
    """Until the other side closes its end; with a scope, only what this client or project sees."""
    from gristmill.agents.mcp.tools import make_server, seat_operator  # noqa: PLC0415 the library takes half a second

    await make_server(asking, seat_operator(scope)).run_stdio_async()
