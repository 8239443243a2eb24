"""Leads the one-time link to the sign-in, which answers in its place: its token is in no address that follows."""

from urllib.parse import parse_qs

from starlette.types import ASGIApp, Receive, Scope, Send

LINK = "/sign-in/link"


class LinkEntrance:
    """`/?token=…`, short enough for a terminal, is answered by the page that uses the token up."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/" and "token" in parse_qs(scope.get("query_string", b"").decode("latin-1")):
            scope = {**scope, "path": LINK, "raw_path": LINK.encode()}
        await self._app(scope, receive, send)
