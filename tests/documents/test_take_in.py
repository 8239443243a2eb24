"""Everything comes in by one way: decided, and written, in the transaction of whoever brings it."""

import asyncio
import io
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from documents.grindstone import Mill, a_mill
from gristmill.db import Database
from gristmill.documents import Item, Note, Staged, Taken, WholeText, remove, remove_source, stage, take_in
from gristmill.documents.blobs import PIECE, clear_staged
from gristmill.documents.notebook import prepare_note, prepare_text
from gristmill.documents.spool import Spool
from gristmill.errors import Permanent, Transient
from gristmill.ids import DocumentId
from gristmill.knowledge import search_hybrid
from gristmill.models import FakeEmbedder, ModelPool
from gristmill.scopes import GLOBAL, Scope

pytestmark = pytest.mark.asyncio(loop_scope="session")
ACME = Scope("acme")
TICKET = Item("tracker:7", "NW-7.md", "Anna Berg signed the contract in Hamburg.", ACME, type="markdown")
LONG = b"The mill grinds all night. " * (3 * PIECE // 27)


@pytest.fixture
def mill(db: Database, models: ModelPool, tmp_path: Path) -> Mill:
    return a_mill(db, tmp_path, models)


async def taken(db: Database, item: Item | WholeText | Note) -> Taken:
    async with db.transaction() as tx:
        return await take_in(tx, item)


async def rows(db: Database, query: Any) -> list[Any]:
    async with db.transaction() as tx:
        return [tuple(row) for row in await tx.all(query)]


def a_day_later(url: str) -> Database:
    return Database(make_conninfo(url, options="-c gristmill.clock_offset=25h"))


async def copied(db: Database, folder: Path, staged: Staged) -> bytes:
    return (await Spool(db, folder, limit=1 << 30).fetch(staged.hash, staged.size)).read_bytes()


# --- items


async def test_an_item_and_the_cursor_of_its_poller_are_written_together_or_not_at_all(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("CREATE TABLE cursor (position int)")

    async def poll(position: int) -> None:
        async with db.transaction() as tx:
            assert (await take_in(tx, TICKET)).status == "added"
            await tx.execute("INSERT INTO cursor VALUES (%(position)s)", position=position)
            if position == 1:
                raise Transient("the connection to the tracker was lost")

    with pytest.raises(Transient):
        await poll(1)
    assert await rows(db, "SELECT urn FROM document UNION ALL SELECT position::text FROM cursor") == []
    assert await rows(db, "SELECT id FROM task") == []
    await poll(2)
    assert await rows(db, "SELECT urn FROM document UNION ALL SELECT position::text FROM cursor") == [
        ("tracker:7",),
        ("2",),
    ]


async def test_an_item_is_new_changed_or_unchanged(db: Database) -> None:
    first = await taken(db, TICKET)
    again = await taken(db, TICKET)
    changed = await taken(db, replace(TICKET, content="Anna Berg did not sign."))
    elsewhere = await taken(db, replace(TICKET, scope=GLOBAL))
    assert [one.status for one in (first, again, changed, elsewhere)] == ["added", "unchanged", "changed", "added"]
    assert first.document == again.document != changed.document
    assert again.reason == f"its content is that of document {first.document}"


async def test_what_the_source_says_stands_above_what_the_content_says(mill: Mill) -> None:
    when = datetime(2026, 3, 3, 10, tzinfo=UTC)
    ticket = replace(
        TICKET, content="# Heading\n\nAnna Berg signed.", title="NW-7", written_at=when, metadata={"by": "Bo"}
    )
    one = await taken(mill.db, ticket)
    await mill.grind()
    (row,) = await mill.rows("SELECT id, type, title, written_at, meta ->> 'by' AS by, completed_at FROM document")
    assert row[:5] == (one.document, "markdown", "NW-7", when, "Bo")
    assert row.completed_at is not None
    other = await taken(mill.db, replace(ticket, metadata={"by": "Carla"}))
    assert (other.status, other.document) == ("unchanged", one.document)
    assert await rows(mill.db, "SELECT meta ->> 'by' FROM document") == [("Carla",)]
    titled = await taken(mill.db, replace(ticket, title="Another"))
    assert titled.status == "changed", "a title stands above every chunk"


async def test_a_type_that_the_source_knows_is_not_guessed(mill: Mill) -> None:
    looks_like_html = "<html><body><p>Anna Berg</p></body></html>"
    await taken(mill.db, Item("a", "a", looks_like_html, type="text"))
    await taken(mill.db, Item("b", "b", looks_like_html))
    await mill.grind()
    assert await rows(mill.db, "SELECT type FROM document ORDER BY urn") == [("text",), ("html",)]


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (Item(" ", "x", b""), "needs a URN"),
        (Item("x" * 2001, "x", b""), "longer than 2,000 bytes"),
        (Item("x", "x", b"", type="opera"), "Nobody knows how to read a file of the type opera"),
        (Item("x", "x", b"", container=DocumentId(7)), "There is no document 7"),
    ],
)
async def test_an_item_that_cannot_be_taken_in_is_refused_and_nothing_is_written(
    db: Database, item: Item, reason: str
) -> None:
    one = await taken(db, item)
    assert (one.status, one.document) == ("refused", None)
    assert one.reason is not None
    assert reason in one.reason
    assert await rows(db, "SELECT id FROM document UNION ALL SELECT id FROM blob") == []


async def test_parts_that_are_the_same_in_a_new_version_of_their_container_stay(mill: Mill) -> None:
    async def poll(text: str, *attachments: str) -> list[Taken]:
        async with mill.db.transaction() as tx:
            ticket = await take_in(tx, replace(TICKET, content=text))
            assert ticket.document is not None
            found = [
                await take_in(tx, Item(f"tracker:7#{n}", f"{n}.md", one, ACME, container=ticket.document))
                for n, one in enumerate(attachments)
            ]
        await mill.grind()
        return found

    old = await poll("The first text.", "A plan.", "A map.")
    new = await poll("The second text.", "A plan.", "Another map.")
    assert [one.status for one in new] == ["unchanged", "changed"]
    assert new[0].document == old[0].document
    assert await rows(mill.db, "SELECT name, version FROM document ORDER BY name") == [
        ("0.md", 1),
        ("1.md", 2),
        ("NW-7.md", 2),
    ]


# --- texts that are written down


async def test_a_whole_text_and_a_note_are_found_when_the_caller_has_committed(db: Database) -> None:
    embedder = FakeEmbedder()
    text, note = "The mill belongs to Ann.", "It grinds at night."
    whole = WholeText("wiki:7", "Mill", text, await prepare_text(db, embedder, text, "Mill"), ACME, "WIKI")
    noted = Note("wiki:7", note, await prepare_note(db, embedder, note), ACME)
    async with db.transaction() as tx:
        found = [await take_in(tx, one) for one in (whole, noted, whole, noted)]
        assert await search_hybrid(db, embedder, "mill", scope=ACME) == []
    assert [one.status for one in found] == ["added", "changed", "unchanged", "unchanged"]
    assert len({one.document for one in found}) == 1
    for wanted in (text, note):
        assert (await search_hybrid(db, embedder, wanted, scope=ACME))[0].text == wanted


# --- bytes that are staged


async def trickle(data: bytes, size: int) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


class Pipe(io.BytesIO):
    """Can be read once."""

    def seekable(self) -> bool:
        return False


@pytest.mark.parametrize("size", [len(LONG), PIECE, PIECE + 1, 100_000])
async def test_bytes_are_staged_however_they_come_and_taken_in_later(db: Database, tmp_path: Path, size: int) -> None:
    staged = await stage(db, trickle(LONG, size))
    assert (staged.hash, staged.size) == (sha256(LONG).digest(), len(LONG))
    one = await taken(db, Item("tracker:8", "log.txt", staged, ACME))
    assert one.status == "added"
    assert await copied(db, tmp_path, staged) == LONG
    assert await rows(db, "SELECT blob FROM staged_blob") == []
    assert (
        await taken(db, Item("tracker:8", "log.txt", await stage(db, io.BytesIO(LONG)), ACME))
    ).status == "unchanged"
    assert await rows(db, "SELECT blob FROM staged_blob") == []


async def test_nothing_can_be_staged(db: Database) -> None:
    staged = await stage(db, Pipe(b""))
    assert (await taken(db, Item("x", "x", staged))).status == "added"


async def test_bytes_that_are_there_are_not_brought_again(db: Database) -> None:
    staged = [await stage(db, io.BytesIO(LONG)), await stage(db, io.BytesIO(LONG)), await stage(db, Pipe(LONG))]
    assert len({one.pin for one in staged}) == 3
    assert await rows(db, "SELECT count(*)::int FROM blob") == [(1,)]
    assert await rows(db, "SELECT count(*)::int FROM blob_piece") == [(3,)]


async def test_of_two_who_stage_the_same_bytes_at_the_same_time_both_have_them(db: Database, tmp_path: Path) -> None:
    staged = await asyncio.gather(*(stage(db, trickle(LONG, PIECE)) for _ in range(3)))
    for n, one in enumerate(staged):
        assert (await taken(db, Item(f"x:{n}", "x", one))).status == "added"
    assert await rows(db, "SELECT count(*)::int FROM blob") == [(1,)]
    assert await copied(db, tmp_path, staged[0]) == LONG


async def test_a_file_that_changes_while_it_is_staged_is_refused(db: Database) -> None:
    class Changing(io.BytesIO):
        def seek(self, *where: int) -> int:
            super().seek(0)
            self.write(b"Another beginning")
            return super().seek(*where)

    with pytest.raises(Permanent, match="changed while it was read"):
        await stage(db, Changing(LONG))


async def test_staged_bytes_stay_for_a_day_whatever_is_removed_meanwhile(
    db: Database, url: str, tmp_path: Path
) -> None:
    first = await taken(db, Item("x:1", "x", LONG))
    staged = await stage(db, io.BytesIO(LONG))
    async with db.transaction() as tx:
        assert first.document is not None
        await remove(tx, [first.document])
    await clear_staged(db)
    assert (await taken(db, Item("x:2", "x", staged))).status == "added"
    assert await copied(db, tmp_path, staged) == LONG
    async with a_day_later(url) as later:
        await clear_staged(later)
    assert await copied(db, tmp_path / "other", staged) == LONG


async def test_staged_bytes_that_nobody_takes_in_go_after_a_day(db: Database, url: str) -> None:
    staged = await stage(db, io.BytesIO(LONG))

    async def broken() -> AsyncIterator[bytes]:
        yield LONG
        yield LONG
        yield bytes(20 * PIECE)
        raise ConnectionError("the other side is gone")

    with pytest.raises(ConnectionError):
        await stage(db, broken())
    assert await rows(db, "SELECT count(*)::int FROM blob") == [(2,)]
    async with a_day_later(url) as later:
        await clear_staged(later)
    assert await rows(db, "SELECT id FROM blob UNION ALL SELECT n FROM blob_piece") == []
    with pytest.raises(Transient, match="stage them again"):
        await taken(db, Item("x", "x", staged))


async def test_a_worker_clears_staged_bytes_as_it_clears_its_copies(db: Database, url: str, tmp_path: Path) -> None:
    await stage(db, io.BytesIO(LONG))
    await taken(db, Item("x", "x", b"The mill."))
    async with a_day_later(url) as later:
        await Spool(later, tmp_path, limit=1 << 20).fetch(sha256(b"The mill.").digest(), 9)
    assert await rows(db, "SELECT size::int FROM blob") == [(9,)]


# --- removal by URN


async def test_a_source_is_removed_with_all_its_versions_and_says_what_went(mill: Mill) -> None:
    await taken(mill.db, TICKET)
    await mill.grind()
    newer = await taken(mill.db, replace(TICKET, content="Anna Berg did not sign."))
    await taken(mill.db, Item("tracker:7#1", "plan.md", "# Plan", ACME, container=newer.document))
    await taken(mill.db, replace(TICKET, scope=GLOBAL))
    async with mill.db.transaction() as tx:
        gone = await remove_source(tx, ACME, "tracker:7")
        assert (gone.documents, gone.pages, gone.chunks) == (3, 1, 1)
        assert gone.nodes > 0
        for scope, urn in ((ACME, "tracker:7"), (Scope("nobody"), "tracker:7")):
            assert (await remove_source(tx, scope, urn)).documents == 0
    assert await rows(mill.db, "SELECT scope FROM document") == [(1,)]
    assert len(await rows(mill.db, "SELECT hash FROM blob")) == 1
