"""The things that routes and pages work with, open for as long as the server runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from fastapi import Request, Response

from gristmill.db import Database, Tx
from gristmill.documents import PageImages, ProgressWatcher
from gristmill.knowledge import Finder
from gristmill.rooms import Room
from gristmill.serving.caller import Caller
from gristmill.settings import Settings


class Closable(Protocol):
    """Something that a room opens for as long as the server runs."""

    async def close(self) -> None: ...


K = TypeVar("K", bound=Closable)


class Render(Protocol):
    """Draws a template of the console for the caller of a request."""

    def __call__(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response: ...


class RecordChange(Protocol):
    """Writes into the audit log what a caller changed, in the transaction of the change."""

    async def __call__(self, tx: Tx, caller: Caller, action: str, subject: str, **details: Any) -> None: ...


@dataclass(frozen=True)
class Services:
    """What web gives to routes and pages."""

    db: Database
    settings: Settings
    finder: Finder
    rooms: Sequence[Room]
    render: Render
    record: RecordChange
    change_in_parts: Callable[[], None]  # called before the first of several changes that one request makes
    images: PageImages  # pictures of pages
    watcher: ProgressWatcher  # of documents, for all who listen
    kept: dict[type[Closable], Closable] = field(default_factory=dict[type[Closable], Closable])

    def keep(self, kind: type[K], make: "Callable[[Services], K]") -> K:
        """The one thing of this kind, made by the first who asks for it and closed with the server."""
        if kind not in self.kept:
            self.kept[kind] = make(self)
        return cast(K, self.kept[kind])

    async def close(self) -> None:
        """End the processes and the work that routes have started."""
        for one in reversed(list(self.kept.values())):
            await one.close()
        await self.images.close()


def services_of(request: Request) -> Services:
    return cast(Services, request.app.state.services)
