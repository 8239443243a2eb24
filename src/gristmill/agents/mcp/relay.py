"""Between standard input and output and the MCP library: answers what is no message, and lets calls end."""

from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared._stream_protocols import (  # pyright: ignore[reportPrivateUsage] these have no public name
    ReadStream,
    WriteStream,
)
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)
from pydantic import ValidationError

PATIENCE = 60.0  # seconds for calls that are in hand when the input ends
Incoming = SessionMessage | Exception  # the library hands on what it could not read
Serve = Callable[[ReadStream[Incoming], WriteStream[SessionMessage]], Awaitable[None]]


class CallsInHand:
    """The requests that nobody has answered yet."""

    def __init__(self) -> None:
        self._ids = set[RequestId]()
        self._changed = anyio.Event()

    def note_coming(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            self._ids.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._drop((message.params or {}).get("requestId"))  # nobody answers it

    def note_going(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._drop(message.id)

    def _drop(self, id: RequestId | None) -> None:
        self._ids -= {id}
        self._changed.set()

    async def wait_for_all(self) -> None:
        while self._ids:
            self._changed = anyio.Event()
            await self._changed.wait()


async def relay(serve: Serve, read: ReadStream[Incoming], write: WriteStream[SessionMessage]) -> None:
    """Serve until the input has ended and its calls are answered."""
    to_server, from_client = anyio.create_memory_object_stream[Incoming]()
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage]()
    calls = CallsInHand()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_bring_in, read, to_server, write, calls)
        tasks.start_soon(_bring_out, from_server, write, calls)
        await serve(from_client, to_client)


async def _bring_in(
    read: ReadStream[Incoming],
    to_server: ObjectSendStream[Incoming],
    write: WriteStream[SessionMessage],
    calls: CallsInHand,
) -> None:
    async with to_server:
        async with read:
            async for one in read:
                if isinstance(one, SessionMessage):
                    calls.note_coming(one.message)
                    await to_server.send(one)
                elif wrong := explain_line(one):
                    await write.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=None, error=wrong)))
        # the library ends all calls when its input is closed, and the other side may wait for their answers
        with anyio.move_on_after(PATIENCE):
            await calls.wait_for_all()


async def _bring_out(
    from_server: ObjectReceiveStream[SessionMessage], write: WriteStream[SessionMessage], calls: CallsInHand
) -> None:
    async with write, from_server:
        async for one in from_server:
            await write.send(one)
            calls.note_going(one.message)


def explain_line(error: Exception) -> ErrorData | None:
    """Why a line is no message; None for an empty one, which asks nothing."""
    first = error.errors()[0] if isinstance(error, ValidationError) else None
    if first is None or first["type"] == "json_invalid":
        if first is not None and not str(first["input"]).strip():
            return None
        return ErrorData(code=PARSE_ERROR, message="The line is not JSON: write one message of JSON-RPC 2.0 in a line.")
    return ErrorData(
        code=INVALID_REQUEST,
        message="The line is no message of JSON-RPC 2.0: an object with “jsonrpc”, “id”, “method” and “params”.",
    )
