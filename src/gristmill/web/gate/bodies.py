"""Bounds the body of a request: small, unless the route takes files and the caller may send them."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from fastapi.routing import APIRoute, iter_route_contexts
from starlette.datastructures import Headers
from starlette.routing import BaseRoute, compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gristmill.serving import FILES_OF, Caller, Problem
from gristmill.settings import Settings
from gristmill.wording import format_bytes


class FileRoute(NamedTuple):
    """A route that takes files, and the room whose setting bounds them."""

    path: re.Pattern[str]
    methods: set[str]
    room: str


class BodyLimit:
    """Counts what is received: a Content-Length that is too large is refused at once, a lie when it shows."""

    def __init__(self, app: ASGIApp, settings: Settings, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._small = settings.web.body_limit
        largest = {"documents": settings.documents.max_bytes, "records": settings.records.max_bytes}
        # the file, and what is sent around it
        self._large = {room: size + settings.web.body_limit for room, size in largest.items()}
        self._routes = routes
        self._paths: Sequence[FileRoute] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most, size = self._choose_limit(scope), 0
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > most:
            raise refuse_body(most)

        async def receive_counted() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if size > most:
                raise refuse_body(most)
            return message

        await self._app(scope, receive_counted, send)

    def _choose_limit(self, scope: Scope) -> int:
        """Files come to the disk before a route checks the caller: one that may not send files has the small limit."""
        caller: Caller | None = scope.get("state", {}).get("caller")
        if caller is None or not caller.has_role("manager"):
            return self._small
        if self._paths is None:  # routes are complete when the first request comes
            self._paths = find_file_routes(self._routes)
        for one in self._paths:
            if one.path.match(scope["path"]) and scope["method"] in one.methods:
                return self._large[one.room]
        return self._small


def find_file_routes(routes: Sequence[BaseRoute]) -> Sequence[FileRoute]:
    return [
        FileRoute(compile_path(context.path)[0], set(context.methods or ()), room)
        for context in iter_route_contexts(routes)
        if isinstance(route := context.original_route, APIRoute)
        and context.path
        and (room := (route.openapi_extra or {}).get(FILES_OF))
    ]


def refuse_body(most: int) -> Problem:
    return Problem(413, f"This is too much for one request: it may have {format_bytes(most)}.")
