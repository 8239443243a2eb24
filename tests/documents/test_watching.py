"""Progress for many listeners: one look for all, the newest state for each, and nothing missed over a reconnect."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from gristmill.db import Database
from gristmill.documents import Item, ProgressEvent, ProgressWatcher, remove, take_in, watching
from gristmill.errors import Unreachable
from gristmill.ids import DocumentId

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def added(db: Database, name: str = "a.md") -> DocumentId:
    async with db.transaction() as tx:
        taken = await take_in(tx, Item(f"file:///{name}", name, "Good day."))
    assert taken.document is not None
    return taken.document


async def completed(db: Database, document: DocumentId) -> None:
    async with db.transaction() as tx:
        await tx.execute("UPDATE document SET completed_at = clock() WHERE id = %(id)s", id=document)


async def rest(events: AsyncIterator[ProgressEvent]) -> list[ProgressEvent]:
    return [one async for one in events]


async def test_a_listener_hears_the_state_of_now_each_change_and_the_end(db: Database) -> None:
    document = await added(db)
    events = ProgressWatcher(db).listen(document)
    first = await anext(events)
    assert (first.what, first.progress and first.progress.status) == ("progress", "pending")
    async with db.transaction() as tx:
        await tx.execute("UPDATE document SET pages = 3 WHERE id = %(id)s", id=document)
    second = await anext(events)
    assert (second.what, second.progress and second.progress.pages) == ("progress", 3)
    await completed(db, document)
    (last,) = await rest(events)
    assert last.what == "ended"
    assert len({first.id, second.id, last.id}) == 3


async def test_who_comes_back_with_the_last_id_hears_only_what_is_new(db: Database) -> None:
    document = await added(db)
    known = await anext(ProgressWatcher(db).listen(document))
    events = ProgressWatcher(db).listen(document, known.id)  # another process, or this one after a restart
    waiting = asyncio.ensure_future(anext(events))
    await asyncio.sleep(0)
    assert not waiting.done()
    await completed(db, document)
    assert (await waiting).what == "ended"
    stale = ProgressWatcher(db).listen(document, known.id)
    assert [one.what for one in await rest(stale)] == ["ended"]


async def test_a_document_that_goes_says_so(db: Database) -> None:
    document = await added(db)
    events = ProgressWatcher(db).listen(document)
    await anext(events)
    async with db.transaction() as tx:
        await remove(tx, [document])
    assert [one.what for one in await rest(events)] == ["gone"]


async def test_many_listeners_cost_one_look(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [await added(db, f"{n}.md") for n in range(3)]
    looks: list[int] = []
    load = watching.load_progress

    async def count(tx: object, ids: list[DocumentId]) -> object:
        looks.append(len(ids))
        return await load(tx, ids)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(watching, "load_progress", count)
    watcher = ProgressWatcher(db)
    listeners = [watcher.listen(document) for document in documents for _ in range(50)]
    waiting = [asyncio.ensure_future(anext(one)) for one in listeners]
    assert {(await one).what for one in waiting} == {"progress"}
    assert looks[0] == 3
    assert len(looks) < 10
    for one in listeners:
        await one.aclose()
    assert watcher._looking is None  # pyright: ignore[reportPrivateUsage] nobody listens, nobody looks


async def test_an_outage_is_waited_for(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    document = await added(db)
    load = watching.load_progress
    failures = [Unreachable("it is down")] * 2

    async def fail(tx: object, ids: list[DocumentId]) -> object:
        if failures:
            raise failures.pop()
        return await load(tx, ids)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(watching, "load_progress", fail)
    events = ProgressWatcher(db).listen(document)
    assert (await anext(events)).what == "progress"
    await events.aclose()
