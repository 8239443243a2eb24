"""Documents that a program wrote down live among those that were read from files."""

import asyncio
from pathlib import Path

import pytest

from gristmill.db import Database
from gristmill.documents import (
    Progress,
    Taken,
    add_again,
    add_file,
    count_documents,
    index_document,
    list_documents,
    list_pages,
    load_documents,
    remove,
    retry,
    store_chunk,
)
from gristmill.documents.blobs import hash_of
from gristmill.documents.spool import Spool
from gristmill.errors import Refused
from gristmill.models import FakeEmbedder
from gristmill.scopes import GLOBAL

pytestmark = pytest.mark.asyncio(loop_scope="session")
EMBEDDER = FakeEmbedder()
MEBIBYTE = 1 << 20


async def listed(db: Database) -> list[Progress]:
    async with db.transaction() as tx:
        return await list_documents(tx)


async def blobs(db: Database) -> int:
    async with db.transaction() as tx:
        return await tx.value("SELECT count(*) FROM blob")


async def test_they_are_listed_shown_and_counted_like_all_others(db: Database) -> None:
    await store_chunk(db, EMBEDDER, "wiki:7", "The mill belongs to Ann.", "wiki::7")
    await store_chunk(db, EMBEDDER, "wiki:7", "It grinds at night.", "wiki::7")
    (one,) = await listed(db)
    assert (one.urn, one.status, one.summary) == ("wiki:7", "completed", "2 pages, 2 chunks")
    assert [phase.status for phase in one.phases] == ["skipped", "completed", "skipped"]
    async with db.transaction() as tx:
        for page in await list_pages(tx, one.id):
            assert [phase.status for phase in page.phases] == ["skipped", "completed", "skipped"]
        assert (await count_documents(tx)).completed == 1
        (document,) = (await load_documents(tx, [one.id])).values()
        assert (await retry(tx, document)).tasks == (), "nothing of it has failed"


async def test_notes_are_not_made_anew_from_bytes_since_there_are_none(db: Database) -> None:
    await store_chunk(db, EMBEDDER, "wiki:7", "The mill belongs to Ann.", "wiki::7")
    await store_chunk(db, EMBEDDER, "wiki:7", "It grinds at night.", "wiki::7")
    (one,) = await listed(db)
    with pytest.raises(Refused, match="was not read from a file"):
        async with db.transaction() as tx:
            await add_again(tx, one.id)
    async with db.transaction() as tx:
        (document,) = (await load_documents(tx, [one.id])).values()
    assert (document.hash, document.size) == (hash_of(b""), 0)


async def test_who_begins_notes_waits_for_nobody_who_removes_others(db: Database) -> None:
    await store_chunk(db, EMBEDDER, "wiki:7", "The mill belongs to Ann.", "wiki::7")
    async with db.transaction() as tx:
        await remove(tx, [one.id for one in await list_documents(tx)])
        await tx.flush()
        await asyncio.wait_for(store_chunk(db, EMBEDDER, "wiki:8", "It grinds at night.", "wiki::8"), 60)
    assert [one.urn for one in await listed(db)] == ["wiki:8"]


async def test_their_bytes_go_with_them_unless_something_else_has_the_same(db: Database, tmp_path: Path) -> None:
    await index_document(db, EMBEDDER, "memo", "The old mill.", "Memo", "desk")
    await index_document(db, EMBEDDER, "memo", "The new mill.", "Memo", "desk")
    assert await blobs(db) == 1
    await added(db, tmp_path / "memo.txt", "The new mill.")
    await index_document(db, EMBEDDER, "memo", "The newest mill.", "Memo", "desk")
    assert await blobs(db) == 2
    async with db.transaction() as tx:
        await remove(tx, [one.id for one in await list_documents(tx)])
    assert await blobs(db) == 0


async def test_a_file_with_the_same_bytes_as_a_long_text_can_be_read(db: Database, tmp_path: Path) -> None:
    text = "The mill grinds. " * (MEBIBYTE // 10)
    await index_document(db, EMBEDDER, "memo", text, "Memo", "desk")
    await added(db, tmp_path / "memo.txt", text)
    copy = await Spool(db, tmp_path / "spool", limit=10 * MEBIBYTE).fetch(hash_of(text.encode()), len(text))
    assert copy.read_text() == text


async def test_nothing_is_written_into_a_file_s_own_document(db: Database, tmp_path: Path) -> None:
    one = await added(db, tmp_path / "plan.md", "# Plan")
    with pytest.raises(Refused, match=f"was read from a file.*note:{one.document}"):
        await store_chunk(db, EMBEDDER, one.urn, "Ask Ann about it.", "person::ann")
    with pytest.raises(Refused, match="was read from a file"):
        await index_document(db, EMBEDDER, one.urn, "Another plan.", "Plan", "x")
    assert [found.id for found in await listed(db)] == [one.document]


async def added(db: Database, path: Path, text: str) -> Taken:
    path.write_text(text)  # noqa: ASYNC240 a few bytes
    return await add_file(db, path, GLOBAL, max_bytes=10 * MEBIBYTE)
