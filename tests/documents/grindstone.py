"""A whole mill in the test's own process: documents go in, and are ground until nothing moves."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gristmill.db import Database
from gristmill.documents import Progress, Taken, add_file, find_with_parts, load_progress
from gristmill.documents.letters import OpenDocument, ReadPage
from gristmill.documents.room import ROOM as DOCUMENTS
from gristmill.ids import DocumentId
from gristmill.knowledge.room import ROOM as KNOWLEDGE
from gristmill.models import ModelPool
from gristmill.queue import Handler, Handlers, Worker
from gristmill.rooms import Tools, bind_rooms
from gristmill.scopes import GLOBAL, Scope
from gristmill.settings import DocumentSettings, Settings


@dataclass
class Mill:
    """`add` files, `grind` them, look at what became of them."""

    db: Database
    folder: Path
    settings: Settings
    models: ModelPool
    handlers: Handlers = field(default_factory=dict)

    def __post_init__(self) -> None:
        # not the rooms above: they would make items of the documents, and work of their own
        self.handlers = dict(bind_rooms((DOCUMENTS, KNOWLEDGE), Tools(self.db, self.settings, self.models)))

    def file(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    async def add(self, name: str, content: str | bytes, scope: Scope = GLOBAL, **more: Any) -> Taken:
        return await add_file(
            self.db, self.file(name, content), scope, max_bytes=self.settings.documents.max_bytes, **more
        )

    async def grind(self) -> None:
        await Worker(self.db, self.handlers, self.settings.queue, until_idle=True).run()

    async def open(self) -> None:
        """Only open what was added: all its pages stand in line then, and come together."""
        opening = {OpenDocument.kind: self.handlers[OpenDocument.kind]}
        await Worker(self.db, opening, self.settings.queue, until_idle=True).run()

    async def ground(self, name: str, content: str | bytes, scope: Scope = GLOBAL) -> Progress:
        """Add one file and grind it."""
        added = await self.add(name, content, scope)
        assert added.document is not None, added.reason
        await self.grind()
        return await self.look(added.document)

    async def look(self, document: DocumentId) -> Progress:
        (one,) = await self.looks([document])
        return one

    async def looks(self, documents: Sequence[DocumentId]) -> list[Progress]:
        async with self.db.transaction() as tx:
            return await load_progress(tx, documents)

    async def family(self, document: DocumentId) -> list[Progress]:
        async with self.db.transaction() as tx:
            return await load_progress(tx, await find_with_parts(tx, [document]))

    async def rows(self, query: Any, **params: Any) -> list[Any]:
        async with self.db.transaction() as tx:
            return await tx.all(query, **params)


async def alone(handler: Handler, letter: ReadPage) -> Any:
    """What the reader of many pages answers about one."""
    (answer,) = [answer async for _, answer in handler.run([letter])]
    if isinstance(answer, Exception):
        raise answer
    return answer


def a_mill(db: Database, folder: Path, models: ModelPool, **documents: Any) -> Mill:
    return Mill(db, folder, Settings(data=folder / "data", documents=DocumentSettings(**documents)), models)


@asynccontextmanager
async def a_model_pool() -> AsyncIterator[ModelPool]:
    """One child of each kind."""
    async with ModelPool(Settings(documents=DocumentSettings(processes=1))) as models:
        yield models
