"""The life of documents: from bytes to pages to chunks to a graph, each unit by itself, exactly once."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from PIL import ImageFilter
from structlog.testing import capture_logs

from documents.files import saved, scan
from documents.grindstone import Mill, a_mill, alone
from gristmill.cli.session import Session
from gristmill.cli.up import choose_query, format_search
from gristmill.db import Database
from gristmill.documents import (
    Removed,
    Skipped,
    add_again,
    add_file,
    blobs,
    list_setbacks,
    list_skipped,
    load_documents,
    removal,
    remove,
    remove_in_portions,
    store,
)
from gristmill.documents.letters import BuildGraph, OpenDocument, ReadPage
from gristmill.documents.parsers import Parsers
from gristmill.documents.reading import PageText, Part
from gristmill.documents.take_in import add_parts
from gristmill.documents.urgency import ORDINARY
from gristmill.errors import Overloaded, Permanent, Refused
from gristmill.ids import DocumentId
from gristmill.knowledge import keys, lexicon
from gristmill.models import ModelPool
from gristmill.queue import Skip, Snooze, on, retry_tasks, why
from gristmill.scopes import GLOBAL, Scope

NOTE = "# Plan\n\nAnna Berg of Nordwind GmbH signed the contract NW-2024-017 in Hamburg on 3 May 2024.\n"
SOMEBODY_WAITS = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def mill(db: Database, models: ModelPool, tmp_path: Path) -> Mill:
    return a_mill(db, tmp_path, models)


async def counted(mill: Mill) -> dict[str, int]:
    (row,) = await mill.rows(
        "SELECT (SELECT count(*) FROM document) AS documents, (SELECT count(*) FROM page) AS pages,"
        " (SELECT count(*) FROM chunk) AS chunks, (SELECT count(*) FROM embedding) AS vectors,"
        " (SELECT count(*) FROM mention) AS mentions, (SELECT count(*) FROM relation) AS relations,"
        " (SELECT count(*) FROM blob) AS blobs, (SELECT count(*) FROM task WHERE owner IS NOT NULL) AS tasks"
    )
    return row._asdict()


async def test_of_two_texts_of_one_page_that_are_written_at_a_time_the_last_is_kept(mill: Mill) -> None:
    ground = await mill.ground("note.md", NOTE)
    async with mill.db.transaction() as tx:
        (document,) = (await store.load_documents(tx, [ground.id])).values()
        for number, text in ((1, "first"), (2, "another"), (1, "second")):
            await store.save_page(tx, document, number, PageText(text, "ocr"), text.encode())
    rows = await mill.rows("SELECT number, method, text, key FROM page ORDER BY number")
    assert [tuple(row) for row in rows] == [(1, "ocr", "second", b"second"), (2, "ocr", "another", b"another")]


async def test_terms_are_gathered_also_if_their_document_is_never_finished(mill: Mill) -> None:
    await mill.rows(f"SELECT setval('chunk_id_seq', {lexicon.FEW - 1})")
    del mill.handlers[BuildGraph.kind]
    await mill.ground("note.md", "The mill grinds at night.")
    assert [row.outcome for row in await mill.rows("SELECT outcome FROM task WHERE kind = 'knowledge.fold'")] == [
        "completed"
    ]


async def test_a_note_becomes_searchable_and_part_of_the_graph(mill: Mill) -> None:
    one = await mill.ground("note.md", NOTE)
    assert (one.status, one.type, one.pages, one.title) == ("completed", "markdown", 1, "Plan")
    assert [phase.status for phase in one.phases] == ["skipped", "completed", "completed"]
    held = await counted(mill)
    assert held["pages"] == held["chunks"] == held["vectors"] == 1
    assert held["mentions"] >= 3


async def test_a_phase_that_does_not_apply_says_why(mill: Mill) -> None:
    note, table = await mill.ground("note.md", NOTE), await mill.ground("stock.csv", "id,item\n1,axle\n2,wheel\n")
    async with mill.db.transaction() as tx:
        assert await list_skipped(tx, note.id) == [Skipped("ocr", 1, "markdown carries its text and needs no reading")]
        assert await list_skipped(tx, table.id) == [Skipped("graph", 1, "a table has no sentences to draw from")]
    assert [phase.status for phase in table.phases] == ["completed", "completed", "skipped"]
    (page,) = await mill.rows(SHOWN_OF_PAGES, id=table.id)
    assert page == ("completed", "completed", None, "skipped", "a table has no sentences to draw from")


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("call.txt", "[00:01:02] Jane Doe: We met Acme Corp in Berlin.\n" * 3, {"Acme Corp", "Berlin"}),
        ("order.md", "Acme Corp ordered:\n\n| part | for |\n|---|---|\n| axle | Bob Grey |\n", {"Acme Corp"}),
        ("terms.md", "- goods go to Acme Corp;\n- the bill goes to Paris;\n- it is paid;\n", {"Acme Corp", "Paris"}),
    ],
)
async def test_whoever_is_named_in_a_transcript_before_a_table_or_in_clauses_is_in_the_graph(
    mill: Mill, name: str, text: str, named: set[str]
) -> None:
    one = await mill.ground(name, text)
    assert one.phases[2].status == "completed"
    found = {row.name for row in await mill.rows("SELECT name FROM mention")}
    assert found >= named
    assert "Bob Grey" not in found, "a table has no sentences"


async def test_whoever_looks_at_a_document_sees_what_went_wrong_and_is_tried_again(mill: Mill) -> None:
    seen: list[list[tuple[str, str]]] = []

    async def open_(letter: OpenDocument) -> Skip:
        async with mill.db.transaction() as tx:
            seen.append([(one.kind, one.error) for one in await list_setbacks(tx, letter.document)])
        if len(seen) == 1:
            raise Overloaded("The disk is away.", timedelta(0))
        return Skip("enough")

    mill.handlers["documents.open"] = on(OpenDocument, open_)
    await mill.ground("note.md", NOTE)
    assert seen == [[], [("documents.open", "The disk is away.")]]


async def test_the_same_content_is_skipped_with_that_reason(mill: Mill) -> None:
    first = await mill.add("note.md", NOTE)
    again = await mill.add("note.md", NOTE)
    assert (again.status, again.document) == ("unchanged", first.document)
    assert again.reason == f"its content is that of document {first.document}"


async def test_adding_again_what_failed_says_why_and_how_to_try_it_again(mill: Mill) -> None:
    document = await mill.ground("torn.pdf", b"%PDF-1.7 torn")
    again = await mill.add("torn.pdf", b"%PDF-1.7 torn")
    assert (again.status, again.document) == ("failed", document.id)
    assert again.reason == (
        f"The PDF is damaged and cannot be opened: gristmill document retry {document.id} tries it again"
    )


async def test_a_changed_file_is_a_new_version_and_the_old_one_stays_until_it_is_whole(mill: Mill) -> None:
    old = await mill.ground("note.md", NOTE)
    added = await mill.add("note.md", NOTE.replace("Hamburg", "Bremen"))
    assert added.status == "changed"
    assert (await counted(mill))["documents"] == 2
    assert (await counted(mill))["chunks"] == 1, "the old version is still there while the new one waits"
    await mill.grind()
    (row,) = await mill.rows("SELECT id, version FROM document")
    assert (row.id, row.version) == (added.document, 2)
    assert not await mill.rows("SELECT FROM mention WHERE name = 'Hamburg'")
    assert not await mill.rows("SELECT FROM task WHERE owner = %(owner)s", owner=f"document:{old.id}")


async def test_making_an_unchanged_document_anew_computes_nothing(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    one = await mill.ground("note.md", NOTE)
    before = await counted(mill)

    async def refuse(self: Any, given: Any, *_: Any) -> Any:
        assert not given, "it computes"
        return []

    async def refuse_pages(self: Any, given: Any) -> AsyncIterator[Any]:
        for place, _ in enumerate(given):
            yield place, AssertionError("it computes")

    monkeypatch.setattr(type(mill.models.embedder), "embed", refuse)
    monkeypatch.setattr(type(mill.models.extractor), "extract", refuse)
    monkeypatch.setattr(Parsers, "read", refuse_pages)
    monkeypatch.setattr(Parsers, "split", refuse)
    async with mill.db.transaction() as tx:
        new = await add_again(tx, one.id)
    await mill.grind()
    assert (await mill.look(new)).status == "completed"
    assert await counted(mill) == before


async def test_eleven_good_pages_of_twelve_go_on_while_the_bad_one_shows_its_error(mill: Mill) -> None:
    good = mill.handlers["ocr.read"]

    async def read(letter: ReadPage) -> Any:
        if letter.page == 7:
            raise Permanent("The page cannot be read.")
        return await alone(good, letter)

    mill.handlers["ocr.read"] = on(ReadPage, read)
    one = await mill.ground("book.pdf", book(12))
    assert (one.status, one.summary) == ("failed", "11 of 12 pages")
    ocr, vector, graph = one.phases
    assert (ocr.status, ocr.done, ocr.failed) == ("failed", 11, 1)
    assert vector.done == vector.total == graph.done >= 11
    rows = await mill.rows("SELECT * FROM page_status WHERE document_id = %(id)s", id=one.id)
    assert [row.ocr_status for row in rows] == ["completed"] * 6 + ["failed"] + ["completed"] * 5
    assert rows[6].ocr_error == "The page cannot be read."
    assert (rows[6].vector_status, rows[6].graphrag_status) == ("pending", "pending")
    assert {row.vector_status for row in rows if row.page_number != 7} == {"completed"}
    assert all(row.vector_started_at <= row.vector_completed_at for row in rows if row.page_number != 7)
    assert all(row.graphrag_completed_at and row.graphrag_retry_count == 0 for row in rows if row.page_number != 7)

    mill.handlers["ocr.read"] = good
    async with mill.db.transaction() as tx:
        (root,) = await tx.all("SELECT task FROM document")
        assert len((await retry_tasks(tx, [root.task])).tasks) == 1
    await mill.grind()
    assert ((await mill.look(one.id)).status, (await mill.look(one.id)).phases[0].done) == ("completed", 12)


async def test_a_letter_is_read_before_the_last_pages_of_a_book_that_came_earlier(mill: Mill) -> None:
    good = mill.handlers.pop("ocr.read")
    long, short = await mill.add("book.pdf", book(12)), await mill.add("note.md", NOTE)
    await mill.grind()
    begun: list[tuple[Any, int]] = []

    async def read(letter: ReadPage) -> Any:
        begun.append((letter.document, letter.page))
        return await alone(good, letter)

    mill.handlers["ocr.read"] = on(ReadPage, read, at_once=1)
    await mill.grind()
    assert len(begun) == 13
    assert begun.index((short.document, 1)) < begun.index((long.document, 11))


async def test_a_file_that_is_no_document_says_so_and_stops_nobody(mill: Mill) -> None:
    bad = await mill.add("broken.pdf", b"%PDF-1.7\nnothing of the kind")
    good = await mill.ground("note.md", NOTE)
    assert good.status == "completed"
    assert bad.document is not None
    one = await mill.look(bad.document)
    assert (one.status, one.summary) == ("failed", "not opened")
    (row,) = await mill.rows(
        "SELECT ocr_status, ocr_error, opening FROM document_status p JOIN document USING (id) WHERE id = %(id)s",
        id=one.id,
    )
    assert row.ocr_status == "failed"
    assert row.ocr_error.endswith(".")
    async with mill.db.transaction() as tx:
        assert row.ocr_error in (await why(tx, row.opening)).sentence


async def test_attachments_are_documents_of_their_own_linked_to_their_mail(mill: Mill) -> None:
    one = await mill.ground("mail.eml", mail_with(NOTE))
    family = await mill.family(one.id)
    assert {(part.name, part.type, part.container, part.status) for part in family} == {
        ("mail.eml", "mail", None, "completed"),
        ("plan.md", "markdown", one.id, "completed"),
    }
    async with mill.db.transaction() as tx:
        gone = await remove(tx, [one.id])
    assert gone.documents == 2
    assert not any((await counted(mill)).values())


def mail_with(plan: str) -> str:
    return (
        "From: Anna Berg <anna@example.com>\nTo: Ben Holt <ben@example.com>\nSubject: The plan\n"
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="b"\n\n'
        "--b\nContent-Type: text/plain\n\nDear Ben, the plan is attached.\n"
        '--b\nContent-Type: text/markdown; name="plan.md"\n'
        f'Content-Disposition: attachment; filename="plan.md"\n\n{plan}\n--b--\n'
    )


async def test_the_attachment_of_a_changed_mail_stays_until_its_own_new_version_is_whole(mill: Mill) -> None:
    await mill.ground("mail.eml", mail_with(NOTE))
    good = mill.handlers["ocr.read"]

    async def read(letter: ReadPage) -> Any:
        (row,) = await mill.rows("SELECT name, version FROM document WHERE id = %(id)s", id=letter.document)
        if row == ("plan.md", 2):
            raise Permanent("The page cannot be read.")
        return await alone(good, letter)

    mill.handlers["ocr.read"] = on(ReadPage, read)
    new = await mill.ground("mail.eml", mail_with(NOTE.replace("Hamburg", "Bremen")))
    rows = await mill.rows("SELECT name, version, container FROM document ORDER BY name, version")
    assert rows == [("mail.eml", 2, None), ("plan.md", 1, new.id), ("plan.md", 2, new.id)]
    assert await mill.rows("SELECT FROM mention WHERE name = 'Hamburg'")

    mill.handlers["ocr.read"] = good
    async with mill.db.transaction() as tx:
        (part,) = await tx.all("SELECT task FROM document WHERE name = 'plan.md' AND version = 2")
        await retry_tasks(tx, [part.task])
    await mill.grind()
    rows = await mill.rows("SELECT name, version, container FROM document ORDER BY name")
    assert rows == [("mail.eml", 2, None), ("plan.md", 2, new.id)]


async def test_the_parts_of_an_older_version_that_is_opened_late_undo_no_newer_ones(mill: Mill) -> None:
    old = await mill.add("mail.eml", mail_with(NOTE))
    new = await mill.add("mail.eml", mail_with(NOTE.replace("Hamburg", "Bremen")))
    good = mill.handlers["documents.open"]

    async def open_(letter: OpenDocument) -> Any:
        if letter.document == old.document and not await mill.rows("SELECT FROM document WHERE name = 'plan.md'"):
            return Snooze(timedelta(milliseconds=50))
        return await good.run(letter)

    mill.handlers["documents.open"] = on(OpenDocument, open_)
    await mill.grind()
    rows = await mill.rows("SELECT name, version, container FROM document ORDER BY name")
    assert rows == [("mail.eml", 2, None), ("plan.md", 1, new.document)]
    assert await mill.rows("SELECT FROM mention WHERE name = 'Bremen'")


async def test_an_attachment_made_anew_still_lies_in_its_mail(mill: Mill) -> None:
    mail = await mill.ground("mail.eml", mail_with(NOTE))
    (part,) = [one for one in await mill.family(mail.id) if one.id != mail.id]
    async with mill.db.transaction() as tx:
        new = await add_again(tx, part.id)
    await mill.grind()
    assert {one.id for one in await mill.family(mail.id)} == {mail.id, new}


async def test_an_old_version_is_not_made_anew_over_a_newer_one(mill: Mill) -> None:
    old = await mill.add("note.md", NOTE)
    new = await mill.add("note.md", NOTE.replace("Hamburg", "Bremen"))
    assert old.document is not None
    with pytest.raises(Refused, match=f"reindex document {new.document}"):
        async with mill.db.transaction() as tx:
            await add_again(tx, old.document)


async def test_parts_that_come_while_their_container_is_removed_go_with_it(mill: Mill) -> None:
    added = await mill.add("mail.eml", mail_with(NOTE))
    assert added.document is not None
    (opening,) = await mill.rows("SELECT opening AS id FROM document")
    async with mill.db.transaction() as settling:
        (document,) = (await load_documents(settling, [added.document])).values()
        await settling.all("SELECT FROM task WHERE id = %(id)s FOR UPDATE", id=opening.id)
        await add_parts(settling, [(document, Part("plan.md", NOTE.encode(), "attachment=1"), ORDINARY)])
        await settling.flush()
        removing = asyncio.create_task(_removed(mill, added.document))
        while not await mill.rows(SOMEBODY_WAITS):  # noqa: ASYNC110 only the server knows
            await asyncio.sleep(0.01)
    assert (await removing).documents == 2
    assert not any((await counted(mill)).values())


async def _removed(mill: Mill, document: DocumentId) -> Removed:
    async with mill.db.transaction() as tx:
        return await remove(tx, [document])


async def test_removing_a_document_says_what_went_and_what_only_lost_evidence(mill: Mill) -> None:
    one = await mill.ground("a.md", NOTE)
    await mill.ground("b.md", "Later that year Anna Berg of the same company met Carla Diaz in Lisbon to talk of it.")
    async with mill.db.transaction() as tx:
        gone = await remove(tx, [one.id])
    assert (gone.documents, gone.pages, gone.chunks) == (1, 1, 1)
    assert gone.nodes_weaker >= 1, "Anna Berg is still known from the other document"
    assert gone.nodes >= 2
    assert await mill.rows("SELECT FROM mention WHERE name = 'Anna Berg'")
    assert not await mill.rows("SELECT FROM mention WHERE name LIKE 'Nordwind%%'")


async def test_a_mailbox_goes_in_portions_and_after_an_interruption_the_rest_of_it(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "PORTION", 2)
    box = await mill.ground("box.mbox", mailbox("Anna Berg", "Bo Olsen", "Anna Berg", "Bo Olsen", "Anna Berg"))
    before = await counted(mill)

    def interrupt(done: int, of: int) -> None:
        assert of == 6
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await remove_in_portions(mill.db, [box.id], interrupt)
    assert {one.id for one in await mill.family(box.id)} >= {box.id}
    assert (await counted(mill))["documents"] == 2
    gone = await remove_in_portions(mill.db, [box.id])
    assert (gone.documents, gone.chunks) == (2, 1)
    assert before["chunks"] == 5
    assert not any((await counted(mill)).values())


async def test_what_goes_in_portions_is_told_as_if_it_had_gone_at_once(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("Anna Berg", "Bo Olsen", "Anna Berg", "Bo Olsen", "Anna Berg")
    told: list[Removed] = []
    for portion in (100, 2):
        monkeypatch.setattr(removal, "PORTION", portion)
        await mill.ground("note.md", NOTE)
        box = await mill.ground("box.mbox", mailbox(*names))
        told.append(await remove_in_portions(mill.db, [box.id]))
    assert told[0].nodes_weaker > 0
    assert told[0].nodes > 1
    assert told[0] == told[1]


async def test_a_mailbox_that_was_emptied_leaves_nothing_of_what_lay_in_it(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "PORTION", 2)
    await mill.ground("box.mbox", mailbox("Anna Berg", "Bo Olsen", "Carla Diaz", "Dora Falk", "Emil Gran"))
    box = await mill.ground("box.mbox", mailbox("Anna Berg"))
    assert [one.status for one in await mill.family(box.id)] == ["completed", "completed"]
    assert (await counted(mill))["documents"] == 2


def mailbox(*names: str) -> str:
    return "\n".join(
        f"From a@example.com Tue Mar  3 10:00:{n:02} 2026\nFrom: a@example.com\nTo: b@example.com\nSubject: {n}\n\n"
        f"{name} signed the contract NW-2024-{n:03} in Hamburg.\n"
        for n, name in enumerate(names)
    )


async def test_removing_an_alias_is_undone_by_making_the_document_anew(mill: Mill) -> None:
    async def named() -> set[str]:
        rows = await mill.rows("SELECT DISTINCT key FROM mention WHERE key LIKE 'person::%%'")
        return {row.key for row in rows}

    one = await mill.ground("note.md", NOTE)
    async with mill.db.transaction() as tx:
        await keys.add_alias(tx, "", "person::anna berg", "person::a. berg")
    assert await named() == {"person::a. berg"}
    async with mill.db.transaction() as tx:
        await keys.remove_alias(tx, "", "person::anna berg")
        await add_again(tx, one.id)
    await mill.grind()
    assert await named() == {"person::anna berg"}


async def test_what_is_removed_while_it_is_ground_leaves_nothing_behind(mill: Mill) -> None:
    added = await mill.add("book.pdf", book(5))
    good = mill.handlers["ocr.read"]

    async def read(letter: ReadPage) -> Any:
        outcome = await alone(good, letter)
        if letter.page == 3:
            async with mill.db.transaction() as tx:
                await remove(tx, [letter.document])
        return outcome

    mill.handlers["ocr.read"] = on(ReadPage, read)
    await mill.grind()
    assert added.document is not None
    assert not any((await counted(mill)).values())


async def test_the_same_file_belongs_to_each_client_by_itself(mill: Mill) -> None:
    one = await mill.ground("note.md", NOTE, Scope("acme"))
    two = await mill.add("note.md", NOTE, Scope("zenith", "moon"))
    assert two.status == "added"
    await mill.grind()
    assert two.document is not None
    assert ((await mill.look(one.id)).client, (await mill.look(two.document)).project) == ("acme", "moon")
    assert (await counted(mill))["blobs"] == 1


async def test_too_large_a_file_is_told_so_at_once_and_nothing_of_it_is_read_or_kept(
    db: Database, models: ModelPool, tmp_path: Path
) -> None:
    mill = a_mill(db, tmp_path, models, max_bytes=1000)
    one = await mill.add("big.txt", "x" * 1001)
    assert (one.status, one.reason) == (
        "refused",
        "The file has 1,001 bytes, and at most 1,000 are read (setting documents.max_bytes).",
    )
    hole = mill.file("hole.bin", "")
    os.truncate(hole, 1 << 40)  # to read it would take the better part of an hour
    assert (await add_file(db, hole, GLOBAL, max_bytes=1000)).status == "refused"
    assert not await mill.rows("SELECT FROM blob")


async def test_a_file_is_hashed_while_others_go_on(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    others, digest = threading.Event(), blobs.digest

    def slow(file: BinaryIO) -> tuple[bytes, int]:
        assert others.wait(30), "nobody else came to anything while a file was hashed"
        return digest(file)

    monkeypatch.setattr(blobs, "digest", slow)
    adding = asyncio.create_task(mill.add("note.md", NOTE * 20_000))
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_later(0.01, others.set)
    assert (await adding).status == "added"


async def test_an_empty_page_needs_no_chunks_to_be_complete(mill: Mill) -> None:
    one = await mill.ground("blank.pdf", book(1, text=""))
    assert (one.status, one.summary) == ("completed", "1 page without text")
    assert {phase.status for phase in one.phases} == {"skipped"}
    reason = "there is no text on the page"
    async with mill.db.transaction() as tx:
        assert await list_skipped(tx, one.id) == [
            Skipped("graph", 0, reason),
            Skipped("ocr", 1, reason),
            Skipped("vector", 0, reason),
        ]
    assert await mill.rows(SHOWN_OF_PAGES, id=one.id) == [("skipped", "skipped", reason, "skipped", reason)]


SHOWN_OF_PAGES = """
    SELECT ocr_status, vector_status, vector_error, graphrag_status, graphrag_error
      FROM page_status WHERE document_id = %(id)s ORDER BY page_number
"""


async def test_a_page_without_text_is_skipped_and_the_phases_of_its_document_are_not(mill: Mill) -> None:
    second = b"Page 2 tells how Anna Berg travelled to city number 2 and met the mayor."
    one = await mill.ground("book.pdf", book(2).replace(second, b" " * len(second)))
    assert [phase.status for phase in one.phases] == ["completed"] * 3
    first, empty = await mill.rows(SHOWN_OF_PAGES, id=one.id)
    assert first == ("completed", "completed", None, "completed", None)
    assert (empty.ocr_status, empty.vector_status, empty.graphrag_status) == ("skipped",) * 3
    assert empty.vector_error == empty.graphrag_error == "the page is blank"


async def test_a_mailbox_has_no_pages_for_its_phases(mill: Mill) -> None:
    box = await mill.ground("box.mbox", "From a@example.com Tue Mar  3 10:00:00 2026\nSubject: 1\n\nDear Ben,\n")
    assert {phase.status for phase in box.phases} == {"skipped"}
    async with mill.db.transaction() as tx:
        assert {one.reason for one in await list_skipped(tx, box.id)} == {"it has no pages"}


async def test_a_picture_in_which_nothing_can_be_read_says_so(mill: Mill) -> None:
    blurred = scan("Invoice INV-2026-031", "Harrow Trust").filter(ImageFilter.GaussianBlur(12))
    with capture_logs() as logs:
        one = await mill.ground("blurred.png", saved(blurred, "PNG"))
    assert (one.status, one.summary, one.phases[0].status) == ("completed", "1 page without text", "skipped")
    async with mill.db.transaction() as tx:
        assert Skipped("ocr", 1, "nothing could be read in the picture") in await list_skipped(tx, one.id)
    assert [entry["page"] for entry in logs if entry["event"] == "page.silent"] == [1]
    again = await mill.ground("copy.png", saved(blurred, "PNG"))
    async with mill.db.transaction() as tx:
        assert Skipped("ocr", 1, "nothing could be read in the picture") in await list_skipped(tx, again.id), (
            "also where it is known without being read"
        )


async def test_a_first_search_is_for_something_that_tells_whatever_the_files_are_called(mill: Mill) -> None:
    at = Session(mill.db, mill.settings)
    short = await mill.ground("a.txt", "The miller of Hamburg sold his windmill in the spring.")
    assert await choose_query(at, [short]) == "miller Hamburg sold windmill"
    named = await mill.ground("b.md", '# The "old" $contract\n\nIt was signed.\n')
    assert await choose_query(at, [short, named]) == "The old contract"


@pytest.mark.parametrize(
    ("scope", "typed"),
    [
        (GLOBAL, 'gristmill search "the mill"'),
        (Scope("acme", "moon base"), "gristmill search \"the mill\" --client acme --project 'moon base'"),
    ],
)
async def test_a_first_search_can_be_typed_as_it_is_shown(scope: Scope, typed: str) -> None:
    assert format_search("the mill", scope) == typed


def book(
    pages: int, text: str = "Page {n} tells how Anna Berg travelled to city number {n} and met the mayor."
) -> bytes:
    """A PDF in which every page has a sentence of its own."""
    texts = [text.format(n=n) for n in range(1, pages + 1)]
    objects = ["<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(pages))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {pages} >>")
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for n, text in enumerate(texts):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {5 + 2 * n} 0 R"
            " /Resources << /Font << /F1 3 0 R >> >> >>"
        )
        stream = f"BT /F1 11 Tf 40 780 Td ({text}) Tj ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    body, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        offsets.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    trailer = f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    return (body + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}" + trailer).encode()
