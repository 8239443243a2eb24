"""How a command asks a running `gristmill up`."""

from pathlib import Path

import msgspec

from gristmill.errors import Refused
from gristmill.knowledge import Hits
from gristmill.scopes import Scope
from gristmill.settings import Settings
from gristmill.web.local.messages import SEARCH, Refusal, SearchRequest, decode_hits, identify_target
from gristmill.web.local.sockets import is_own_socket, shorten, socket_in

CONNECT = 0.5  # seconds to reach the service …
ANSWER = 10.0  # … and for its answer: a command that searches by itself is not much slower


async def ask_search(settings: Settings, query: str, scope: Scope, **how: object) -> Hits | None:
    """The hits, or None if nobody answers: then the caller searches by itself. A refusal is raised as it is."""
    path = socket_in(settings)
    if not is_own_socket(path):
        return None
    request = msgspec.convert(
        {"target": identify_target(settings), "query": query, "client": scope.client, "project": scope.project, **how},
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
            raise Refused(msgspec.json.decode(body, type=Refusal).refused)
        return decode_hits(body) if status == 200 else None
    except msgspec.DecodeError:  # of another version of the program
        return None


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
