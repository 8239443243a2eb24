"""What is shown of documents: what was cancelled, what waits, and what was drawn from them."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from documents.grindstone import Mill, a_mill, alone
from gristmill.db import Database
from gristmill.documents import add_again, list_setbacks, load_documents
from gristmill.documents.letters import EmbedChunk, ReadPage
from gristmill.models import ModelPool
from gristmill.queue import Snooze, cancel, on

NOTE = "# Plan\n\nAnna Berg of Nordwind GmbH signed the contract NW-2024-017 in Hamburg on 3 May 2024.\n"

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def mill(db: Database, models: ModelPool, tmp_path: Path) -> Mill:
    return a_mill(db, tmp_path, models)


async def test_a_page_that_merely_waits_shows_no_error(mill: Mill) -> None:
    good, waited = mill.handlers["ocr.read"], list[Any]()

    async def read(letter: ReadPage) -> Any:
        rows = await mill.rows("SELECT ocr_status, ocr_error FROM page_status")
        async with mill.db.transaction() as tx:
            waited.append((rows, await list_setbacks(tx, letter.document)))
        return await alone(good, letter) if len(waited) > 1 else Snooze(timedelta(0), "others are being read")

    mill.handlers["ocr.read"] = on(ReadPage, read)
    assert (await mill.ground("note.md", NOTE)).status == "completed"
    assert waited == [([("processing", None)], [])] * 2


async def test_a_cancelled_document_says_so_in_all_its_phases_and_how_to_make_it_anew(mill: Mill) -> None:
    added = await mill.add("note.md", NOTE)
    assert added.document is not None
    async with mill.db.transaction() as tx:
        (document,) = (await load_documents(tx, [added.document])).values()
        await cancel(tx, [document.task])
    seen = await mill.look(document.id)
    assert [seen.status, *(phase.status for phase in seen.phases)] == ["cancelled"] * 4
    again = await mill.add("note.md", NOTE)
    assert (again.status, again.reason) == (
        "cancelled",
        "document 1 was cancelled: gristmill document reindex 1 makes it anew",
    )
    async with mill.db.transaction() as tx:
        new = await add_again(tx, document.id)
    await mill.grind()
    assert (await mill.look(new)).status == "completed"
    assert await mill.looks([document.id]) == []


async def test_what_was_cancelled_halfway_is_not_complete_and_replaces_nothing(mill: Mill) -> None:
    old = await mill.ground("note.md", NOTE.replace("Hamburg", "Bremen"))

    async def embed(letter: EmbedChunk) -> Snooze:
        async with mill.db.transaction() as tx:
            await cancel(tx, [(await load_documents(tx, [letter.document]))[letter.document].task])
        return Snooze(timedelta(0))

    mill.handlers[EmbedChunk.kind] = on(EmbedChunk, embed)
    one = await mill.ground("note.md", NOTE)
    assert [one.status, *(phase.status for phase in one.phases)] == ["cancelled", "skipped", "cancelled", "cancelled"]
    (row,) = await mill.rows(
        "SELECT ocr_status, vector_status, graphrag_status FROM page_status WHERE document_id = %(id)s", id=one.id
    )
    assert row == ("skipped", "cancelled", "cancelled")
    assert (await mill.look(old.id)).status == "completed"


async def test_a_page_that_was_read_while_its_document_was_cancelled_is_cancelled(mill: Mill) -> None:
    good = mill.handlers[ReadPage.kind]

    async def read(letter: ReadPage) -> Any:
        answer = await alone(good, letter)
        async with mill.db.transaction() as tx:
            await cancel(tx, [(await load_documents(tx, [letter.document]))[letter.document].task])
        return answer

    mill.handlers[ReadPage.kind] = on(ReadPage, read)
    one = await mill.ground("note.md", NOTE)
    assert [one.status, *(phase.status for phase in one.phases)] == ["cancelled"] * 4
    assert not await mill.rows("SELECT FROM task WHERE outcome = 'failed'")


async def test_a_chunk_shows_how_much_was_drawn_from_it(mill: Mill) -> None:
    await mill.ground("note.md", NOTE)
    (row,) = await mill.rows(
        "SELECT entities_extracted, relationships_extracted, (SELECT count(*) FROM mention) AS mentions,"
        " (SELECT count(*) FROM relation) AS relations FROM chunk_status"
    )
    assert row.entities_extracted == row.mentions > 0
    assert row.relationships_extracted == row.relations > 0
