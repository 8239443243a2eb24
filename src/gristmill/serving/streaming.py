"""Server-sent events: a stream that says now and then that it is still there, and ends when nobody listens."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
from fastapi.responses import StreamingResponse

HEARTBEAT = 15.0  # seconds without an event after which a comment is sent: proxies close what is silent
STREAM = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def answer_events(source: AsyncGenerator[str], *, longest: float | None = None) -> StreamingResponse:
    """Send these events as they come. Whoever leaves closes the source; after `longest` seconds the stream ends."""
    return StreamingResponse(keep_alive(source, longest), media_type="text/event-stream", headers=STREAM)


async def keep_alive(source: AsyncGenerator[str], longest: float | None = None) -> AsyncGenerator[str]:
    loop = asyncio.get_running_loop()
    end = None if longest is None else loop.time() + longest
    waiting = asyncio.ensure_future(anext(source, None))
    try:
        while end is None or loop.time() < end:
            await asyncio.wait([waiting], timeout=HEARTBEAT)
            if not waiting.done():
                yield ": still there\n\n"
                continue
            if (event := waiting.result()) is None:
                return
            yield event
            waiting = asyncio.ensure_future(anext(source, None))
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        await source.aclose()


def write_event(name: str, data: Any, id: str | None = None) -> str:
    """An event with JSON as its data, which has no line break."""
    head = "" if id is None else f"id: {id}\n"
    return f"{head}event: {name}\ndata: {msgspec.json.encode(data).decode()}\n\n"
