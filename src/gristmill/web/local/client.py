"""How a command asks a running `gristmill up`."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec

from gristmill.errors import Refused
from gristmill.knowledge import Hits
from gristmill.scopes import Scope
from gristmill.settings import Settings
from gristmill.web.local.messages import (
    ASK,
    SEARCH,
    AskRequest,
    LocalRefusal,
    SearchRequest,
    decode_hits,
    identify_target,
    name_scope,
)
from gristmill.web.local.sockets import is_own_socket, shorten, socket_in

CONNECT = 0.5  # seconds to reach the service …
LONGEST_LINE = 4 * 1024**2  # bytes of one event of an answer
ANSWER = 10.0  # … and for its answer: a command that searches by itself is not much slower


async def ask_search(settings: Settings, query: str, scope: Scope | None, **how: object) -> Hits | None:
    """The hits, or None if nobody answers: then the caller searches by itself. A refusal is raised as it is."""
    path = socket_in(settings)
    if not is_own_socket(path):
        return None
    request = msgspec.convert(
        {"target": identify_target(settings), "query": query, **name_scope(scope), **how},
        SearchRequest,
    )
    try:
        found = await _post(path, msgspec.json.encode(request))
    except UnicodeEncodeError:  # half a character: the search itself says so
        return None
    if found is None:
        return None
    status, body = found
    try:
        if status == 422:
            raise Refused(msgspec.json.decode(body, type=LocalRefusal).refused)
        return decode_hits(body) if status == 200 else None
    except msgspec.DecodeError:  # of another version of the program
        return None


async def ask_local(
    settings: Settings, question: str, scope: Scope | None, conversation: int | bool | None
) -> AsyncGenerator[tuple[str, dict[str, Any]]] | None:
    """The answer as it is made, or None if nobody answers. Closing the generator stops the answer."""
    path = socket_in(settings)
    if not is_own_socket(path):
        return None
    request = AskRequest(identify_target(settings), question, **name_scope(scope), conversation=conversation)
    lines = _stream(path, msgspec.json.encode(request))
    first = await anext(lines, None)  # nobody there, another database, or another version of the program
    return None if first is None else _read_pairs(first, lines)


async def _read_pairs(first: bytes, lines: AsyncGenerator[bytes]) -> AsyncGenerator[tuple[str, dict[str, Any]]]:
    async with aclosing(lines):
        yield msgspec.json.decode(first, type=tuple[str, dict[str, Any]])
        async for line in lines:
            yield msgspec.json.decode(line, type=tuple[str, dict[str, Any]])


async def _stream(path: Path, body: bytes) -> AsyncGenerator[bytes]:
    import aiohttp  # noqa: PLC0415 as in _post

    limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT)
    try:
        with shorten(path) as name:
            async with (
                aiohttp.ClientSession(
                    connector=aiohttp.UnixConnector(name), timeout=limits, read_bufsize=LONGEST_LINE
                ) as session,
                session.post(f"http://local{ASK}", data=body) as response,
            ):
                if response.status != 200:
                    return
                async for line in response.content:
                    yield line
    except (aiohttp.ClientError, OSError, TimeoutError):
        return


async def _post(path: Path, body: bytes) -> tuple[int, bytes] | None:
    import aiohttp  # noqa: PLC0415 it takes as long as a search, and mostly nobody is there to be asked

    limits = aiohttp.ClientTimeout(total=ANSWER, sock_connect=CONNECT)
    try:
        with shorten(path) as name:
            async with (
                aiohttp.ClientSession(connector=aiohttp.UnixConnector(name), timeout=limits) as session,
                session.post(f"http://local{SEARCH}", data=body) as response,
            ):
                return response.status, await response.read()
    except (aiohttp.ClientError, OSError, TimeoutError):
        return None
