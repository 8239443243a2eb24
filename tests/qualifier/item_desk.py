"""A desk with items on it: made, decided and looked at, without a worker."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from psycopg.conninfo import make_conninfo

from gristmill.db import Database
from gristmill.ids import WorkItemId
from gristmill.models import FakeEmbedder, FakeLlm
from gristmill.qualifier import explain_item
from gristmill.qualifier.explaining import Explanation
from gristmill.qualifier.model import WorkItem
from gristmill.qualifier.qualification import qualify_many
from gristmill.qualifier.store import ItemDraft, get_item, make_item
from gristmill.qualifier.texts import load_item_texts
from gristmill.queue import send_many
from gristmill.rooms import Tools
from gristmill.scopes import Scope, scope_id
from gristmill.settings import LlmSettings, Settings

WRITTEN = datetime(2026, 5, 4, 9, tzinfo=UTC)
ACME = Scope("acme")
EMBEDDER = FakeEmbedder()


@dataclass
class ItemDesk:
    """Makes items of one client and decides about them."""

    db: Database
    settings: Settings
    llm: FakeLlm | None = None

    @property
    def tools(self) -> Tools:
        models: Any = SimpleNamespace(embedder=EMBEDDER, built_in_embedder=EMBEDDER, llm=self.llm)
        return Tools(self.db, self.settings, models)

    def with_llm(self, *replies: Any) -> "ItemDesk":
        settings = self.settings.model_copy(update={"llm": LlmSettings(model="fake")})
        return ItemDesk(self.db, settings, FakeLlm(list(replies)))

    async def make(self, text: str, *, subject: str = "A mail", scope: Scope = ACME, **more: Any) -> WorkItemId:
        note = {"subject": subject, "sender": "petr@beta.example", "recipients": ["office@acme.example"]}
        note |= more.pop("note", {})
        given: dict[str, Any] = {"type": "email", "state": "ready_for_qualification", "written_at": WRITTEN} | more
        async with self.db.transaction() as tx:
            own = await scope_id(tx, scope)
            return await make_item(
                tx, ItemDraft(own, title=subject, why="It came in.", by="test", text=text, note=note, **given)
            )

    async def decide(self, *ids: WorkItemId) -> None:
        """Each in a transaction of its own, as tasks end."""
        async with self.db.reading() as tx:
            texts = await load_item_texts(tx, ids)
        for found in await qualify_many(self.tools, texts):
            assert not isinstance(found, Exception), found
            async with self.db.transaction() as tx:
                await found.write(tx)
                await send_many(tx, found.then)

    async def qualify(self, text: str, **more: Any) -> WorkItem:
        id_ = await self.make(text, **more)
        await self.decide(id_)
        return await self.load(id_)

    async def load(self, id_: WorkItemId) -> WorkItem:
        async with self.db.reading() as tx:
            return await get_item(tx, id_)

    async def explain(self, id_: WorkItemId) -> Explanation:
        async with self.db.reading() as tx:
            return await explain_item(tx, id_)

    async def letters(self, kind: str) -> Sequence[Any]:
        async with self.db.reading() as tx:
            rows = await tx.all("SELECT payload FROM task WHERE kind = %(kind)s ORDER BY id", kind=kind)
        return [row.payload for row in rows]


@asynccontextmanager
async def open_desk(url: str) -> AsyncIterator[ItemDesk]:
    """A desk whose clock stands where its items were written."""
    offset = WRITTEN - datetime.now(UTC)
    there = make_conninfo(url, options=f"-c gristmill.clock_offset={offset.total_seconds():.0f}s")
    async with Database(there) as db:
        yield ItemDesk(db, Settings())
