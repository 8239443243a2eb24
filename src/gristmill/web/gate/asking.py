"""Notes that a person asks for something: background work gives way to a person who waits for an answer."""

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from gristmill.db import Database
from gristmill.qualifier import RequestNotes

# what makes the machine think for somebody; items say themselves when a person waits for them
ASKING = ("/search", "/ask", "/api/kb/search", "/api/ask")


class AskingNotes:
    """Behind the check of callers: a stranger interrupts nobody."""

    def __init__(self, app: ASGIApp, db: Database) -> None:
        self._app = app
        self._notes = RequestNotes(db, "web")
        self._noting = set[asyncio.Task[None]]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and is_asking(scope["path"]) and scope.get("state", {}).get("caller") is not None:
            noting = asyncio.create_task(self._notes.note_request())  # beside the answer, which waits for nothing
            self._noting.add(noting)
            noting.add_done_callback(self._noting.discard)
        await self._app(scope, receive, send)


def is_asking(path: str) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in ASKING)
