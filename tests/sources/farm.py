"""A farm for tests of sources: they are added, polled, listed and indexed in the test's own process."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from gristmill.db import Database
from gristmill.models import ModelPool
from gristmill.queue import Handlers, Worker
from gristmill.queue.context import Running, set_current
from gristmill.rooms import Tools, bind_rooms
from gristmill.scopes import GLOBAL, Scope
from gristmill.settings import DocumentSettings, QueueSettings, Settings
from gristmill.sources.letters import ListSource, PollSource
from gristmill.sources.listing import Lister
from gristmill.sources.model import Kind, Source
from gristmill.sources.opening import Opener
from gristmill.sources.poller import Poller, ask_for_poll
from gristmill.sources.register import Wanted, add_source, get_source
from gristmill.sources.room import ROOM
from gristmill.telemetry import WorkerMetrics

QUICK = QueueSettings(poll=timedelta(milliseconds=100), heartbeat=timedelta(seconds=5))
PATIENCE = 60.0  # seconds until a wait is a failure; never what a test is about
AT_WORK = "SELECT FROM task WHERE outcome IS NULL AND wait IS DISTINCT FROM 'time' AND queue = ANY (%(queues)s) LIMIT 1"
ITEMS = """
SELECT i.external, i.state, i.version, i.urn, i.title, i.type, i.error, i.thread, i.sent, i.removed, i.document, i.size,
       (SELECT string_agg(r.bytes, '' ORDER BY r.n) FROM source_raw r WHERE r.item = i.id) AS raw
  FROM source_item i JOIN source s ON s.id = i.source WHERE s.id = %(id)s ORDER BY i.external
"""


@dataclass
class Farm:
    """`add` a source, `work` until nothing is left to do, look at the `items`.

    A worker takes longer to begin and to end than to poll a few items. Where it `keeps` its worker, one answers all
    letters of a test, until somebody works by hand.
    """

    db: Database
    settings: Settings
    models: ModelPool
    keeps: bool = False
    handlers: Handlers = field(default_factory=dict)
    _worker: Worker | None = None
    _running: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.handlers = bind_rooms([ROOM], Tools(self.db, self.settings, self.models))

    async def add(self, kind: str, scope: Scope = GLOBAL, *, name: str = "one", **options: Any) -> Source:
        async with self.db.transaction() as tx:
            return await add_source(tx, Wanted(name, kind, options, scope))

    async def work(self) -> None:
        """Poll and index until all that is left was put off."""
        if self._worker is None:
            self._worker = Worker(self.db, self.handlers, QUICK, maintenance=False)
            self._running = asyncio.create_task(self._worker.run())
        async with asyncio.timeout(PATIENCE):
            while await self.rows(AT_WORK, queues=["sources", "index"]):  # noqa: ASYNC110 the database tells nobody
                await asyncio.sleep(0.02)
        if not self.keeps:
            await self.rest()

    async def rest(self) -> None:
        """Nobody answers letters from now on."""
        if self._worker is not None and self._running is not None:
            self._worker.stop()
            async with asyncio.timeout(PATIENCE):
                await self._running
            self._worker = self._running = None

    async def poll(self, source: Source) -> None:
        await self.ask(source)
        await self.work()

    async def compare(self, source: Source, *, agreed: bool = False) -> None:
        await self.ask(source, listing=True, agreed=agreed)
        await self.work()

    async def ask(self, source: Source, **how: Any) -> None:
        async with self.db.transaction() as tx:
            await ask_for_poll(tx, source, **how)

    async def items(self, source: Source) -> list[Any]:
        return await self.rows(ITEMS, id=source.id)

    async def states(self, source: Source) -> dict[str, str]:
        return {item.external: item.state for item in await self.items(source)}

    async def look(self, source: Source) -> Source:
        async with self.db.transaction() as tx:
            return await get_source(tx, source.id)

    async def rows(self, query: Any, **params: Any) -> list[Any]:
        async with self.db.transaction() as tx:
            return await tx.all(query, **params)

    async def documents(self) -> dict[str, int]:
        """The URN of each document, and how many versions of it there are."""
        rows = await self.rows("SELECT urn, count(*)::int AS n FROM document WHERE container IS NULL GROUP BY urn")
        return {row.urn: row.n for row in rows}

    def by_hand(self, kinds: Mapping[str, Kind]) -> "Hands":
        opener = Opener(self.db, kinds, self.settings.data / "sources", self.settings.documents.max_bytes)
        poller = Poller(opener, self.settings.sources.turn)
        return Hands(opener, poller, self.settings.sources.most_gone, self.rest)


class Hands:
    """Calls the poller and the lister without a worker, so that a test may end a call wherever it likes."""

    def __init__(self, opener: Opener, poller: Poller, most_gone: float, rest: Callable[[], Awaitable[None]]) -> None:
        self.opener = opener
        self._rest = rest
        self.metrics: WorkerMetrics | None = None
        self._poller = poller
        self._lister = Lister(poller, most_gone)

    async def poll(self, source: Source) -> Any:
        await self._rest()
        set_current(Running([_Member()], lambda task, progress: None, metrics=self.metrics))
        return await self._poller.poll(PollSource(source.id))

    async def compare(self, source: Source, *, agreed: bool = False) -> Any:
        await self._rest()
        set_current(Running([_Member()], lambda task, progress: None))
        return await self._lister.list(ListSource(source.id, agreed))


class _Member:
    id = 0  # pyright: ignore[reportAssignmentType]
    attempt = 1
    cancelled = False


@asynccontextmanager
async def a_farm(db: Database, folder: Path, *, keeps: bool = False, **sources: Any) -> AsyncIterator[Farm]:
    settings = Settings(data=folder / "data", documents=DocumentSettings(processes=1))
    if sources:
        settings = settings.model_copy(update={"sources": settings.sources.model_copy(update=sources)})
    async with ModelPool(settings) as models:
        farm = Farm(db, settings, models, keeps)
        try:
            yield farm
        finally:
            await farm.rest()


def a_mail(n: int | str, text: str = "Hello.", **headers: str) -> bytes:
    """A mail with an id of its own."""
    given = {
        "From": "Anna <anna@acme.test>",
        "To": "Bob <bob@acme.test>",
        "Subject": f"Subject {n}",
        "Date": "Mon, 02 Mar 2026 10:00:00 +0000",
        "Message-ID": f"<{n}@acme.test>",
    } | {name.replace("_", "-"): value for name, value in headers.items()}
    return (
        "".join(f"{name}: {value}\r\n" for name, value in given.items() if value).encode() + f"\r\n{text}\r\n".encode()
    )
