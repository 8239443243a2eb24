"""The MCP server behind `/mcp`: it reads its calls from the web server, and asks the request who calls."""

import asyncio
from http import HTTPStatus
from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Send
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
        if connection["method"] == "POST":
            body = await Request(connection, receive).body()
            if wrong := find_fault(body):
                await refuse_message(wrong)(connection, receive, send)
                return
            receive = give_again(body, receive)
        await self._server.session_manager.handle_request(connection, receive, send)


def find_fault(body: bytes) -> str | None:
    """Why a body is no message; the library would answer with the text of its validator, many lines of it."""
    try:
        jsonrpc_message_adapter.validate_python(from_json(body), by_name=False)
    except ValidationError:
        return "The body must be one message of JSON-RPC 2.0: an object with “jsonrpc”, “id”, “method” and “params”."
    except ValueError:  # it is not JSON: of this, the library tells the place in one sentence
        return None
    return None


def refuse_message(wrong: str) -> Response:
    error = JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=INVALID_REQUEST, message=wrong))
    said = error.model_dump_json(by_alias=True, exclude_unset=True)
    return Response(said, HTTPStatus.BAD_REQUEST, media_type="application/json")


def give_again(body: bytes, receive: Receive) -> Receive:
    """A body that was read, for the library to read; what comes after it comes from the caller."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def find_seat(ctx: Context[Any, Any]) -> Seat:
    """The caller of the request that brought this call."""
    request: Any = ctx.request_context.request
    caller: Caller | None = getattr(request.state, "caller", None) if request is not None else None
    if caller is None:
        raise Problem(401, "This needs a key: send it as “Authorization: Bearer …”.")
    return Seat(caller.bound_to, caller.choose_scope, caller.choose_view)
