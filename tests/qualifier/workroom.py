"""A qualifier in the test's own process: documents are there as if they were read, and decided by their first word."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, cast

import orjson

from gristmill.db import Database, Tx
from gristmill.ids import DocumentId, ScopeId, WorkItemId
from gristmill.models import ModelPool
from gristmill.qualifier.executor import Checkpoint, ExecutorResult, ItemQuestion
from gristmill.qualifier.letters import DispatchDue, SweepItems
from gristmill.qualifier.model import ChildItem, ItemEvent, ItemMemory, ItemMessage, ItemText, Route, WorkItem
from gristmill.qualifier.room import bind_engine
from gristmill.qualifier.routing import apply_route
from gristmill.qualifier.store import get_item, list_events, list_items, list_messages
from gristmill.queue import Handlers, Worker, bind, open_group, seal, send
from gristmill.rooms import Tools
from gristmill.scopes import GLOBAL, Scope, scope_id
from gristmill.settings import QualifierSettings, QueueSettings, Settings
from gristmill.tasks import DocumentRead

PATIENCE = 60.0  # seconds until a wait is a failure; never what a test is about
WRITTEN = datetime(2026, 5, 4, 9, tzinfo=UTC)
SOON, FAR = timedelta(days=1), timedelta(days=30)
QUICK = QueueSettings(
    heartbeat=timedelta(milliseconds=200),
    lease=timedelta(seconds=20),
    poll=timedelta(milliseconds=50),
    rescue=timedelta(seconds=60),
    stop=timedelta(seconds=5),
)


@dataclass(frozen=True)
class Verdict:
    """What is written about an item: where its first word sends it."""

    item: WorkItem
    route: Route
    then: tuple[()] = ()

    @property
    def is_work(self) -> bool:
        return self.route.to not in ("info_only", "handled")

    async def write(self, tx: Tx) -> None:
        await apply_route(tx, self.item, self.route, decision=None, why=f"It says {self.route.to}.", by="rules")


def choose_route(text: ItemText) -> Route:
    """NOW, HIGH, LATER, SOONER, HANDLED, PARTS, INTO 7; anything else is information."""
    words = text.text.partition("\n\n")[2].split() or text.text.split() or [""]
    now = text.item.written_at
    match words[0]:
        case "NOW":
            return Route("now")
        case "HIGH":
            return Route("now", "high", now + SOON)
        case "LATER":
            return Route("later", deadline=now + FAR, scheduled_at=now + FAR - SOON)
        case "SOONER":
            return Route("later", deadline=now + FAR - SOON, scheduled_at=now + FAR - 2 * SOON)
        case "HANDLED":
            return Route("handled")
        case "PARTS":
            return Route("decompose", children=[ChildItem(f"Part {n}", f"Do part {n}.") for n in range(int(words[1]))])
        case "INTO":
            return Route("consolidate", "high", into=WorkItemId(int(words[1])))
        case _:
            return Route("now") if text.item.type in ("scheduled", "user_input") else Route("info_only")


async def qualify(texts: Sequence[ItemText]) -> Sequence[Verdict | Exception]:
    return [Verdict(text.item, choose_route(text)) for text in texts]


async def nobody(tx: Tx, scopes: Sequence[ScopeId]) -> Mapping[ScopeId, Sequence[str]]:
    return {}


@dataclass
class Puppet:
    """An executor that does what a test says: `act` answers each run; `runs` names the items that it was given."""

    act: Callable[[WorkItem, Sequence[ItemMessage], Checkpoint], Any] = lambda *_: ExecutorResult("It is done.")
    available: Callable[[], None] = lambda: None
    runs: list[tuple[WorkItemId, list[str]]] = field(default_factory=list)
    memories: list[ItemMemory | None] = field(default_factory=list)
    name: str = "puppet"

    async def check(self) -> None:
        self.available()

    async def run(
        self, item: WorkItem, memory: ItemMemory | None, messages: Sequence[ItemMessage], checkpoint: Checkpoint
    ) -> ExecutorResult | ItemQuestion:
        self.runs.append((item.id, [one.text for one in messages]))
        self.memories.append(memory)
        answer = self.act(item, messages, checkpoint)
        if asyncio.iscoroutine(answer):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        return cast("ExecutorResult | ItemQuestion", answer)


class _NoModels:
    """Without a model nothing of the pool is touched."""


@dataclass
class Workroom:
    """`come` brings documents, `work` answers all letters, `items` and `events` show what became of them."""

    db: Database
    executor: Puppet = field(default_factory=Puppet)
    settings: QualifierSettings = field(default_factory=lambda: QualifierSettings(quiet=timedelta(0)))
    qualify: Any = qualify
    find_own_addresses: Any = nobody

    @property
    def handlers(self) -> Handlers:
        settings = Settings(qualifier=self.settings)
        tools = Tools(self.db, settings, cast(ModelPool, _NoModels()))
        return bind(*bind_engine(tools, self.qualify, self.find_own_addresses, self.executor))

    # --- what comes in

    async def come(
        self,
        body: str,
        *,
        name: str = "letter.txt",
        urn: str = "",
        type: str | None = "text",
        title: str | None = None,
        version: int = 1,
        scope: Scope = GLOBAL,
        container: DocumentId | None = None,
        read: bool | None = True,
        written_at: datetime = WRITTEN,
        meta: Mapping[str, Any] | None = None,
        tell: bool = True,
    ) -> DocumentId:
        """A document that was read (`read=None`: it could not be, False: not yet), and the letter that says so."""
        async with self.db.transaction() as tx:
            own = await scope_id(tx, scope)
            document = DocumentId(
                await tx.value(
                    ADD_DOCUMENT,
                    scope=own,
                    urn=urn or f"file:///{name}",
                    version=version,
                    body=body.encode(),
                    container=container,
                    name=name,
                    type=type,
                    title=title or (name.partition(".")[0] if type else None),
                    meta=orjson.dumps(dict(meta or {})).decode(),
                    written_at=written_at,
                )
            )
            await self._add_phase(tx, document, own, read)
            if read:
                await self.read_page(tx, document, own, body)
            if tell and read is not False:
                await send(tx, DocumentRead(document), scope=own)
        return document

    async def _add_phase(self, tx: Tx, document: DocumentId, scope: ScopeId, read: bool | None) -> None:
        group = await open_group(tx, owner=f"document:{document}", scope=scope)
        await tx.execute(ADD_PHASE, document=document, scope=scope, task=group)
        if read is None:
            await tx.execute(FAIL_GROUP, id=group)
        elif read:
            await seal(tx, group)

    async def read_page(self, tx: Tx, document: DocumentId, scope: ScopeId, body: str, number: int = 1) -> None:
        key = sha256(f"{document}.{number}".encode()).digest()
        await tx.execute(ADD_PAGE, document=document, scope=scope, text=body, key=key, number=number)

    async def finish_reading(self, document: DocumentId, body: str) -> None:
        """Read a document that was not, and say so."""
        async with self.db.transaction() as tx:
            row = await tx.one(FIND_PHASE, document=document)
            assert row is not None
            await self.read_page(tx, document, row.scope, body)
            await tx.execute(REOPEN_GROUP, id=row.task)
            await seal(tx, row.task)
            await send(tx, DocumentRead(document), scope=row.scope)

    async def tell(self, document: DocumentId) -> None:
        """Say once more that a document is read."""
        async with self.db.transaction() as tx:
            await send(tx, DocumentRead(document))

    async def mail(
        self, body: str, id_: str, *, answers: Sequence[str] = (), sender: str = "ana@north.example", **more: Any
    ) -> DocumentId:
        """A mail, under the URN that sources give it; one that is added by hand has another."""
        subject = more.pop("subject", f"About {id_}")
        meta = {
            "from": [sender],
            "to": more.pop("to", ["office@acme.example"]),
            "subject": subject,
            "message_id": f"<{id_}>",
            "references": [f"<{one}>" for one in answers],
            "digest": sha256(f"{sender} {body}".encode()).hexdigest(),
        }
        head = f"**From:** {sender}  \n**Subject:** {subject}\n\n"
        urn, name = more.pop("urn", f"email::{id_}"), more.pop("name", f"{id_}.eml")
        return await self.come(head + body, name=name, urn=urn, type="mail", meta=meta, **more)

    # --- what is done

    async def work(self, **options: Any) -> None:
        """Answer letters until none is left that may be answered now."""
        async with asyncio.timeout(PATIENCE):
            await Worker(self.db, self.handlers, QUICK, maintenance=False, until_idle=True, **options).run()

    @asynccontextmanager
    async def working(self, handlers: Handlers | None = None) -> AsyncIterator[Worker]:
        """A worker that runs meanwhile."""
        worker = Worker(self.db, handlers or self.handlers, QUICK, maintenance=False)
        running = asyncio.create_task(worker.run())
        try:
            yield worker
        finally:
            worker.stop()
            async with asyncio.timeout(PATIENCE):
                await running

    async def decide(self) -> None:
        """Decide what came in, and execute nothing."""
        some = {kind: one for kind, one in self.handlers.items() if kind.startswith("qualify.")}
        async with asyncio.timeout(PATIENCE):
            await Worker(self.db, some, QUICK, maintenance=False, until_idle=True).run()

    async def sweep(self) -> None:
        async with self.db.transaction() as tx:
            await send(tx, SweepItems())
        await self.decide()

    async def dispatch(self) -> None:
        async with self.db.transaction() as tx:
            await send(tx, DispatchDue())
        await self.decide()

    async def do(self, action: Callable[..., Any], *given: Any, **more: Any) -> Any:
        """Call something that takes a transaction."""
        async with self.db.transaction() as tx:
            return await action(tx, *given, **more)

    # --- what is there

    async def items(self) -> list[WorkItem]:
        return sorted(await self.do(list_items, limit=500), key=lambda item: item.id)

    async def item(self, id_: WorkItemId | None = None) -> WorkItem:
        """The one of this id; without one the only one."""
        if id_ is not None:
            return await self.do(get_item, id_)
        (item,) = await self.items()
        return item

    async def states(self) -> list[str]:
        """Each item in a few words: its state, and how it ended."""
        return [item.state if item.outcome is None else f"{item.state}: {item.outcome}" for item in await self.items()]

    async def events(self, id_: WorkItemId | None = None) -> list[ItemEvent]:
        return await self.do(list_events, (await self.item(id_)).id)

    async def path(self, id_: WorkItemId | None = None) -> list[str]:
        """The states that an item went through."""
        return [event.state for event in await self.events(id_) if event.state != event.was]

    async def messages(self, id_: WorkItemId | None = None) -> list[tuple[str, str]]:
        found: list[ItemMessage] = await self.do(list_messages, (await self.item(id_)).id)
        return [(one.kind, one.text) for one in found]

    async def rows(self, query: Any, **params: Any) -> list[Any]:
        async with self.db.transaction() as tx:
            return await tx.all(query, **params)

    async def until(self, condition: Callable[[], Any], what: str = "it") -> Any:
        """Wait until it is true, and say what was if it never is."""
        async with asyncio.timeout(PATIENCE):
            while not (seen := await condition()):  # noqa: ASYNC110 the database tells nobody
                await asyncio.sleep(0.01)
        return seen

    async def until_state(self, *wanted: str, id_: WorkItemId | None = None) -> WorkItem:
        async def there() -> WorkItem | None:
            item = await self.item(id_)
            return item if item.state in wanted else None

        return await self.until(there, f"one of {wanted}")


ADD_DOCUMENT = """
WITH kept AS (SELECT keep_bytes(%(body)s) AS hash)
INSERT INTO document (scope, urn, version, hash, container, name, type, title, meta, written_at, pages, task, opening)
SELECT %(scope)s, %(urn)s, %(version)s, hash, %(container)s, %(name)s, %(type)s, %(title)s, %(meta)s::jsonb,
       %(written_at)s, 1, 1, 0
  FROM kept RETURNING id
"""
ADD_PHASE = """
INSERT INTO phase (document, ordinal, name, unit, shown, scope, task)
VALUES (%(document)s, 10, 'ocr', 'page', true, %(scope)s, %(task)s)
"""
ADD_PAGE = """
INSERT INTO page (document, number, scope, method, text, key)
VALUES (%(document)s, %(number)s, %(scope)s, 'text', %(text)s, %(key)s)
"""
FAIL_GROUP = """
UPDATE task_group SET sealed = true, failed = 1, status = 'failed', finished_at = clock() WHERE id = %(id)s
"""
REOPEN_GROUP = """
UPDATE task_group SET failed = 0, status = 'pending', finished_at = NULL, sealed = false WHERE id = %(id)s
"""
FIND_PHASE = """
SELECT d.scope, p.task FROM document d JOIN phase p ON p.document = d.id WHERE d.id = %(document)s
"""


def move_clock(db: Database, offset: timedelta) -> Database:
    """The same database, with every session of it ahead of the world's clock."""
    joint = "&" if "?" in db.url else "?"
    return Database(f"{db.url}{joint}options=-c%20gristmill.clock_offset%3D{int(offset.total_seconds())}s")
