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
from psycopg import AsyncCursor
from psycopg.conninfo import make_conninfo

from documents.grindstone import Mill, a_mill
from gristmill.db import Database
from gristmill.documents import (
    Item,
    Limits,
    Note,
    Staged,
    Taken,
    Urgency,
    WholeText,
    blobs,
    read_ahead,
    remove,
    remove_source,
    stage,
    store,
    take_in,
    take_in_many,
)
from gristmill.documents.blobs import PIECE, clear_staged
from gristmill.documents.letters import OpenDocument, ReadPage, SealPhase
from gristmill.documents.notebook import NOTHING, prepare_note, prepare_text
from gristmill.documents.spool import Spool
from gristmill.errors import Permanent, Transient
from gristmill.ids import DocumentId
from gristmill.knowledge import search_hybrid
from gristmill.models import FakeEmbedder, ModelPool
from gristmill.queue import Worker
from gristmill.scopes import GLOBAL, Scope, scope_id

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
        (Item("x" * 2601, "x", b"", container=DocumentId(7)), "longer than 2,600 bytes"),
        (Item("x\0", "x", b""), "Its URN holds a character"),
        (Item("x\ud800", "x", b""), "Its URN holds a character"),
        (Item("x", "x\0", b""), "Its name holds a character"),
        (Item("x", "x\udfff", b""), "Its name holds a character"),
        (Item("x", "x", b"", title="x\0"), "Its title holds a character"),
        (Item("x", "x", b"", title="x\ud800"), "Its title holds a character"),
        (Item("x", "x", "x\ud800"), "Its content holds a character"),
        (Item("x", "x", b"", metadata={"by": ["Bo\0"]}), "Its metadata cannot be written"),
        (Item("x", "x", b"", metadata={"Bo\0": 1}), "Its metadata cannot be written"),
        (Item("x", "x", b"", metadata={"by": "Bo\ud800"}), "Its metadata cannot be written"),
        (Item("x", "x", b"", metadata={"by": object()}), "Its metadata cannot be written"),
        (Item("x", "x", b"", written_at=datetime(2026, 3, 3)), "has no time zone"),  # noqa: DTZ001 that is the mistake
        (WholeText("x", "x\0", "x", NOTHING), "Its title holds a character"),
        (WholeText("x", "x", "x\ud800", NOTHING), "Its text holds a character"),
        (WholeText("x", "x", "x", NOTHING, metadata={"by": object()}), "Its metadata cannot be written"),
        (WholeText("x", "x", "x", NOTHING, written_at=datetime(2026, 3, 3)), "has no time zone"),  # noqa: DTZ001 as above
        (Note("x", "x\ud800", NOTHING), "Its text holds a character"),
    ],
)
async def test_an_item_that_cannot_be_taken_in_is_refused_and_nothing_is_written(
    db: Database, item: Item | WholeText | Note, reason: str
) -> None:
    async with db.transaction() as tx:
        one = await take_in(tx, item)
        assert await tx.value("SELECT 1") == 1, "the transaction lives on"
    assert (one.status, one.document) == ("refused", None)
    assert one.reason is not None
    assert reason in one.reason
    assert await rows(db, "SELECT id FROM document UNION ALL SELECT id FROM blob") == []


async def test_a_backslash_before_a_code_is_no_character_that_cannot_be_kept(db: Database) -> None:
    one = await taken(db, replace(TICKET, metadata={"path": r"C:\u0000"}))
    assert one.status == "added"
    assert await rows(db, "SELECT meta ->> 'path' FROM document") == [(r"C:\u0000",)]


async def test_metadata_that_the_source_takes_away_goes(mill: Mill) -> None:
    mail = "From: Bo <bo@example.com>\nSubject: Plan\n\nAnna Berg signed.\n"
    item = Item("mail:7", "7.eml", mail, ACME, type="mail", metadata={"folder": "Inbox", "flag": "red"})
    await taken(mill.db, item)
    await mill.grind()
    assert (await taken(mill.db, replace(item, metadata={"folder": "Archive"}))).status == "unchanged"
    ((meta,),) = await rows(mill.db, "SELECT meta FROM document")
    assert meta["folder"] == "Archive"
    assert "flag" not in meta
    assert "bo@example.com" in str(meta), "what the content says itself stays"


async def test_two_who_take_in_the_same_items_in_another_order_do_not_block_each_other(db: Database) -> None:
    items = [Item(f"tracker:{n}", f"{n}.md", f"Text {n}.", ACME) for n in range(8)]
    both = asyncio.Barrier(2)

    async def poll(given: list[Item]) -> list[str]:
        async with db.transaction() as tx:
            await tx.value("SELECT 1")
            await both.wait()
            return [one.status for one in await take_in_many(tx, given)]

    async with asyncio.timeout(20):
        for turn in range(5):
            new = [replace(item, content=f"{item.content} {turn}") for item in items]
            found = await asyncio.gather(poll(new), poll(new[::-1]))
            fresh = "changed" if turn else "added"
            assert sorted(found) == sorted([[fresh] * 8, ["unchanged"] * 8])


async def test_items_that_come_together_are_answered_in_their_order(db: Database) -> None:
    items = [replace(TICKET, urn="b"), Item(" ", "x", b""), replace(TICKET, urn="a"), replace(TICKET, urn="b")]
    async with db.transaction() as tx:
        found = await take_in_many(tx, items)
    assert [(one.urn, one.status) for one in found] == [
        ("b", "added"),
        (" ", "refused"),
        ("a", "added"),
        ("b", "unchanged"),
    ]


async def test_no_staged_part_leaves_a_pin_behind(mill: Mill) -> None:
    async def poll(container: DocumentId, content: bytes) -> Taken:
        staged = await stage(mill.db, io.BytesIO(content))
        return await taken(mill.db, Item("tracker:7#1", "1.md", staged, ACME, container=container))

    old = await taken(mill.db, TICKET)
    assert old.document is not None
    assert (await poll(old.document, b"A plan.")).status == "added"
    new = await taken(mill.db, replace(TICKET, content="Another text."))
    assert new.document is not None
    assert (await poll(new.document, b"A plan.")).status == "unchanged"
    assert await rows(mill.db, "SELECT pin FROM staged_blob") == []
    assert (await poll(new.document, b"Another plan.")).status == "changed"
    assert (await poll(old.document, b"A late plan.")).status == "unchanged"
    assert await rows(mill.db, "SELECT pin FROM staged_blob") == []
    assert await rows(mill.db, "SELECT size::int FROM blob WHERE hash = sha256('A late plan.')") == []


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


async def test_bytes_that_take_longer_than_a_day_to_arrive_are_not_left_behind(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blobs, "PIECE", 8)
    monkeypatch.setattr(blobs, "PORTION", 1)

    async def slow() -> AsyncIterator[bytes]:
        yield b"one day "
        async with db.transaction() as tx:
            await tx.execute("UPDATE staged_blob SET at = at - interval '25 hours'")
        yield b"and more"
        await clear_staged(db)
        yield b"the end."

    staged = await stage(db, slow())
    assert staged.size == 24


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


def read(item: Item) -> Item:
    """The same item, read before it is taken in."""
    content = item.content.encode() if isinstance(item.content, str) else item.content
    assert isinstance(content, bytes)
    ahead = read_ahead(content, item.name, item.type, Limits())
    assert ahead is not None
    return replace(item, ahead=ahead)


STANDING = """
SELECT d.urn, d.version, d.type, d.title, d.meta, d.pages, s.status, s.ocr_status, s.ocr_completed_pages,
       (SELECT array_agg((p.number, p.method, p.text, encode(p.key, 'hex'))::text ORDER BY p.number)
          FROM page p WHERE p.document = d.id) AS texts,
       (SELECT array_agg((g.page_number, g.ocr_status, g.ocr_error, g.ocr_retry_count, g.vector_status, g.chunk_count,
                          g.ocr_started_at <= g.ocr_completed_at)::text ORDER BY g.page_number)
          FROM page_status g WHERE g.document_id = d.id) AS units,
       (SELECT array_agg((t.kind, t.outcome, t.error)::text ORDER BY t.kind) FROM task t
         WHERE t.owner = 'document:' || d.id AND t.kind = 'vector.split') AS tasks,
       (SELECT array_agg((h.phase, h.status, h.completed, h.skipped, h.total, h.started_at <= h.finished_at,
                          h.error)::text ORDER BY h.ordinal) FROM phase_progress h WHERE h.document = d.id) AS phases
  FROM document d JOIN document_status s USING (id) WHERE d.urn LIKE %(urn)s ORDER BY d.urn, d.version
"""


async def standing(mill: Mill, urn: str) -> list[Any]:
    async with mill.db.transaction() as tx:
        return [tuple(row)[1:] for row in await tx.all(STANDING, urn=urn)]


KINDS_OF_FILES = [
    ("markdown", "# A plan\n\nThe mill grinds all night."),
    ("mail", "From: bo@example.com\r\nSubject: Flour\r\nDate: Mon, 2 Mar 2026 10:00:00 +0000\r\n\r\nSend flour."),
    ("text", "word " * 20_000),
]


@pytest.mark.parametrize(("type_", "content"), KINDS_OF_FILES)
async def test_what_was_read_ahead_stands_as_if_it_had_just_been_read(mill: Mill, type_: str, content: str) -> None:
    plain = Item("plain:1", "one.txt", content, ACME, type=type_, urgency=Urgency(foreground=True, priority=3))
    await taken(mill.db, plain)
    reading = {one.kind: mill.handlers[one.kind] for one in (OpenDocument, ReadPage, SealPhase)}
    await Worker(mill.db, reading, mill.settings.queue, until_idle=True).run()
    await taken(mill.db, read(replace(plain, urn="ahead:1")))
    assert await standing(mill, "ahead:%") == await standing(mill, "plain:%")
    assert (await standing(mill, "ahead:%"))[0][5:7] == ("processing", "completed" if type_ == "mail" else "skipped")
    left = """SELECT kind, lane, foreground, wait FROM task
               WHERE owner = 'document:' || %(id)s AND outcome IS NULL AND queue IN ('documents', 'vector')
               ORDER BY 1, 2, 4"""
    async with mill.db.transaction() as tx:
        first, second = await tx.values("SELECT id FROM document ORDER BY urn", DocumentId)
        documents = await store.load_documents(tx, [first, second])
        ahead, as_plain = documents[first], documents[second]
        assert await tx.all(left, id=ahead.id) == await tx.all(left, id=as_plain.id)
    assert ahead.urgency == as_plain.urgency == Urgency(foreground=True, priority=3)


@pytest.mark.parametrize(("type_", "content"), KINDS_OF_FILES)
async def test_what_was_read_ahead_ends_as_if_it_had_been_opened_and_read(mill: Mill, type_: str, content: str) -> None:
    plain = Item("plain:1", "one.txt", content, ACME, type=type_, metadata={"folder": "Inbox"})
    await taken(mill.db, plain)
    await mill.grind()
    await taken(mill.db, read(replace(plain, urn="ahead:1")))
    await mill.grind()
    assert await standing(mill, "ahead:%") == await standing(mill, "plain:%")
    assert (await standing(mill, "ahead:%"))[0][5] == "completed"


async def test_a_document_that_was_read_ahead_is_replaced_like_any_other(mill: Mill) -> None:
    await taken(mill.db, read(TICKET))
    await mill.grind()
    assert (await taken(mill.db, read(TICKET))).status == "unchanged"
    assert (await taken(mill.db, read(replace(TICKET, content="Bo Berg signed it in Kiel.")))).status == "changed"
    await mill.grind()
    assert await rows(mill.db, "SELECT version, completed_at IS NOT NULL FROM document") == [(2, True)]


async def test_a_client_takes_in_what_it_has_read_ahead(mill: Mill) -> None:
    items = [read(replace(TICKET, urn=f"tracker:{n}", content=f"Text {n}.")) for n in range(30)]
    async with mill.db.transaction() as tx:
        await scope_id(tx, ACME)
    async with mill.db.transaction(seen_from=ACME) as tx:
        assert {one.status for one in await take_in_many(tx, items)} == {"added"}
    await mill.grind()
    done = await rows(mill.db, "SELECT urn FROM document WHERE completed_at IS NOT NULL")
    assert len(done) == 30


async def test_many_items_take_a_handful_of_statements(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    async def count(n: int) -> int:
        sent = 0

        async def execute(self: AsyncCursor[Any], *args: Any, **more: Any) -> Any:
            nonlocal sent
            sent += 1
            return await plain(self, *args, **more)

        plain = AsyncCursor.execute
        items = [replace(TICKET, urn=f"tracker:{n}/{place}", content=f"Text {n} {place}.") for place in range(n)]
        async with db.transaction() as tx:
            with monkeypatch.context() as patched:
                patched.setattr(AsyncCursor, "execute", execute)
                await take_in_many(tx, items)
                await tx.flush()
        return sent

    await count(1)  # which makes the scope
    assert await count(200) <= await count(2) <= 20
