"""What people look at: lists that stay fast, trees, chunks, versions, what a removal takes, retries of one unit."""

import sys
from pathlib import Path
from typing import Any

import pytest

from documents.files import pdf
from documents.grindstone import Mill, a_mill
from gristmill.db import Database
from gristmill.documents import (
    DocumentFilter,
    Item,
    add_again,
    count_documents,
    find_containers,
    find_documents,
    list_chunks,
    list_containers,
    list_versions,
    load_documents,
    load_one,
    load_page,
    load_pages,
    load_version_pages,
    preview_removal,
    remove,
    remove_source,
    retry_unit,
    take_in,
)
from gristmill.documents import listing as listing_module
from gristmill.documents.letters import EmbedChunk, ReadPage
from gristmill.documents.store import SQL as DOCUMENTS
from gristmill.errors import Permanent, Refused, Unknown
from gristmill.ids import DocumentId
from gristmill.models import ModelPool
from gristmill.queue import on
from gristmill.scopes import GLOBAL, Scope, scope_id
from plans import count_rows

sys.path.insert(0, str(Path(__file__).parents[1] / "queue"))
from engine import buried

pytestmark = pytest.mark.asyncio(loop_scope="session")
ACME, MOON = Scope("acme"), Scope("acme", "moon")
MAIL = (
    b"From: a@example.org\nTo: b@example.org\nSubject: Plan\nMIME-Version: 1.0\n"
    b"Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/plain\n\nSee the note.\n"
    b'--x\nContent-Type: text/plain\nContent-Disposition: attachment; filename="note.md"\n\n# Note\n\nGrind.\n--x--\n'
)


@pytest.fixture
def mill(db: Database, models: ModelPool, tmp_path: Path) -> Mill:
    return a_mill(db, tmp_path, models)


async def added(db: Database, name: str, scope: Scope = GLOBAL, content: str = "note", **more: Any) -> DocumentId:
    async with db.transaction() as tx:
        taken = await take_in(tx, Item(f"file:///{name}", name, content, scope, **more))
    assert taken.document is not None
    return taken.document


async def names(db: Database, seen_from: Scope | None = None, limit: int = 50, **wanted: Any) -> list[str]:
    """All portions of a list."""
    found: list[str] = []
    before: DocumentId | None = None
    while True:
        async with db.transaction(seen_from=seen_from) as tx:
            portion = await find_documents(tx, DocumentFilter(**wanted), before=before, limit=limit)
        found += [one.name for one in portion.documents]
        if portion.next is None:
            return found
        before = portion.next


# --- lists


async def test_documents_are_found_by_whose_they_are_by_type_by_name_and_by_status(db: Database) -> None:
    for n, scope in enumerate((GLOBAL, ACME, MOON, Scope("zenith"))):
        await added(db, f"plan {n}.md", scope)
    async with db.transaction() as tx:
        await tx.execute("UPDATE document SET type = 'markdown', title = 'The Great Mill' WHERE name = 'plan 2.md'")
        await tx.execute("UPDATE document SET completed_at = clock() WHERE name = 'plan 1.md'")
    assert await names(db) == ["plan 3.md", "plan 2.md", "plan 1.md", "plan 0.md"]
    assert await names(db, limit=1) == ["plan 3.md", "plan 2.md", "plan 1.md", "plan 0.md"]
    assert await names(db, client="acme") == ["plan 2.md", "plan 1.md"]
    assert await names(db, client="acme", project="moon") == ["plan 2.md"]
    assert await names(db, client="nobody") == []
    assert await names(db, type="markdown") == await names(db, name="gREAT") == ["plan 2.md"]
    assert await names(db, name="PLAN", limit=2) == ["plan 3.md", "plan 2.md", "plan 1.md", "plan 0.md"]
    assert await names(db, name="100%_") == []
    assert await names(db, status="completed") == ["plan 1.md"]
    assert await names(db, status="pending", limit=1) == ["plan 3.md", "plan 2.md", "plan 0.md"]
    assert await names(db, status="failed") == []
    assert await names(db, status="pending", type="markdown") == ["plan 2.md"]
    with pytest.raises(Refused, match="“done” is no status"):
        await names(db, status="done")


async def test_a_client_lists_its_own_documents_and_those_of_everybody(db: Database) -> None:
    for n, scope in enumerate((GLOBAL, ACME, MOON, Scope("zenith"))):
        await added(db, f"{n}.md", scope)
    assert await names(db, seen_from=ACME) == ["2.md", "1.md", "0.md"]
    assert await names(db, seen_from=MOON) == ["2.md", "1.md", "0.md"]
    assert await names(db, seen_from=ACME, client="zenith") == []
    assert await names(db, seen_from=Scope("zenith"), status="pending") == ["3.md", "0.md"]


async def test_a_portion_that_looked_at_enough_says_where_to_go_on(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_module, "SCANNED", 3)
    monkeypatch.setattr(listing_module, "JUDGED", 3)
    monkeypatch.setattr(listing_module, "ROUNDS", 1)
    for n in range(10):
        await added(db, f"needle {n}" if n in (0, 5) else f"hay {n}")
    async with db.transaction() as tx:
        first = await find_documents(tx, DocumentFilter(name="needle"), limit=2)
    assert (list(first.documents), first.next is None) == ([], False)
    assert await names(db, name="needle", limit=2) == ["needle 5", "needle 0"]
    assert len(await names(db, status="pending", limit=2)) == 10


FILL = """
INSERT INTO document (scope, urn, version, hash, name, type, task, opening, completed_at)
SELECT %(scope)s, 'urn:' || n, 1, sha256(''), 'file ' || n, CASE n %% 1000 WHEN 0 THEN 'pdf' ELSE 'text' END, 0, 0,
       CASE WHEN n %% 500 > 0 THEN clock() END
  FROM generate_series(1, 20000) n
"""


async def test_no_list_reads_all_documents(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("INSERT INTO blob (hash, size) VALUES (sha256(''), 0)")
        for scope in (ACME, MOON, Scope("zenith")):
            await tx.execute(FILL, scope=await scope_id(tx, scope))
        scopes = await tx.value("SELECT array_agg(id) FROM scope")
        await tx.execute("ANALYZE document")
        given = {"scopes": scopes, "everywhere": False, "before": 2**62, "type": "pdf", "container": 7, "top": False,
                 "name": "", "completed": False, "scan": 51, "most": 51}  # fmt: skip
        for name in ("newest", "newest_of_scopes", "of_type", "incomplete", "failed", "parts"):
            plan = await tx.all("EXPLAIN " + listing_module.SQL[name], **given)
            text = "\n".join(row[0] for row in plan)
            assert "Seq Scan on document" not in text, f"{name}:\n{text}"
    assert len(await names(db, seen_from=Scope("zenith"), type="pdf", limit=7)) == 20


async def test_failed_documents_are_listed_to_their_own_and_found_however_many_letters_are_dead(db: Database) -> None:
    for n, scope in enumerate((GLOBAL, ACME, MOON, Scope("zenith"), ACME)):
        await added(db, f"{n}.md", scope)
    async with db.transaction() as tx:
        await buried(tx, 5, queues=("documents",))
        scope = await scope_id(tx, Scope("zenith"))
        await tx.execute(DEAD, scope=scope, document=4)
        await tx.execute("ANALYZE task")
        tally = await count_documents(tx)
    assert tally.errors == 5
    assert await names(db, status="failed", limit=2) == ["4.md", "3.md", "2.md", "1.md", "0.md"]
    assert await names(db, status="failed", name="3") == ["3.md"]
    assert await names(db, status="failed", client="acme") == ["4.md", "2.md", "1.md"]
    assert await names(db, seen_from=ACME, status="failed", limit=1) == ["4.md", "2.md", "1.md", "0.md"]
    assert await names(db, seen_from=Scope("zenith"), status="failed") == ["3.md", "0.md"]
    async with db.transaction(seen_from=ACME) as tx:
        assert await tx.values("SELECT * FROM dead_documents(NULL, 99, 9)", int) == [5, 3, 2, 1], "its own and GLOBAL"
        assert (await count_documents(tx)).errors == 4
    for seen_from in (None, Scope("zenith")):
        async with db.transaction(seen_from=seen_from) as tx:
            (plan,) = [await tx.value(LOOK) for _ in range(2)][1]  # the first look reads catalogs, too
        assert plan["Plan"]["Shared Hit Blocks"] < 500, "3,000 dead letters of one document are passed over"


@pytest.mark.parametrize("seen_from", [None, Scope("zenith")])
async def test_the_pages_of_a_document_are_read_without_the_tasks_of_others(
    db: Database, seen_from: Scope | None
) -> None:
    own, other = [await added(db, f"{n}.md", Scope("zenith")) for n in range(2)]
    async with db.transaction() as tx:
        scope = await scope_id(tx, Scope("zenith"))
        await tx.execute(DEAD, scope=scope, document=other)
        await tx.execute("UPDATE document SET pages = 3 WHERE id = %(id)s", id=own)
        await tx.execute("ANALYZE task")
    async with db.transaction(seen_from=seen_from) as tx:
        statement = "EXPLAIN (ANALYZE, FORMAT JSON) " + DOCUMENTS["pages_of"]
        (plan,) = await tx.value(statement, id=own, first=1, last=None)  # type: ignore[arg-type]
    assert count_rows(plan["Plan"]) < 1_000


LOOK = "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM dead_documents(NULL, 99, 9)"
DEAD = """
INSERT INTO task (id, created_at, scope, lane, queue, kind, owner, payload, outcome, finished_at, died_at)
SELECT nextval('task_id'), clock(), %(scope)s, 1203, 'documents', 'ocr.read', 'document:' || %(document)s, '{}',
       'failed', clock(), clock()
  FROM generate_series(1, 3000) n
"""


# --- trees


async def test_the_parts_of_a_mail_are_listed_and_know_where_they_lie(mill: Mill) -> None:
    mail = await mill.ground("plan.eml", MAIL)
    async with mill.db.transaction() as tx:
        (note,) = (await find_documents(tx, DocumentFilter(container=mail.id))).documents
        assert (note.name, note.container, note.part_of) == ("note.md", mail.id, "plan.eml")
        assert [one.name for one in await list_containers(tx, note.id)] == ["plan.eml"]
        assert await list_containers(tx, mail.id) == []
        assert await find_containers(tx, [mail.id, note.id]) == {mail.id}
        assert [one.id for one in (await find_documents(tx, DocumentFilter(top=True))).documents] == [mail.id]
        with pytest.raises(Unknown, match="There is no document 999"):
            await load_one(tx, DocumentId(999))


# --- pages and chunks


async def test_chunks_say_where_they_stand_on_their_page_and_how_far_they_are(mill: Mill) -> None:
    text = "# Mill\n\n" + "\n\n".join(f"## Part {n}\n\n" + "It grinds all night long. " * 40 for n in range(4))
    document = await mill.ground("mill.md", text)
    async with mill.db.transaction() as tx:
        page = await load_page(tx, document.id, 1)
        chunks = await list_chunks(tx, document.id, 1)
        assert len(chunks) > 3
        assert all(page.text[one.start : one.stop] in one.text for one in chunks)
        assert chunks[0].phases == {"vector": "completed", "graph": "completed"}
        rest = await list_chunks(tx, document.id, after=(1, 0), limit=2)
        assert [one.ordinal for one in rest] == [1, 2]
        assert [one.number for one in await load_pages(tx, document.id)] == [1]
        with pytest.raises(Unknown, match="no text of page 7"):
            await load_page(tx, document.id, 7)


# --- versions


async def test_the_text_of_a_version_that_was_replaced_is_kept(mill: Mill) -> None:
    for text in ("The mill rests.", "The mill grinds.", "The mill burns."):
        last = await mill.ground("mill.md", text)
    async with mill.db.transaction() as tx:
        versions = await list_versions(tx, last.id)
        assert [(one.version, one.document) for one in versions] == [(3, last.id), (2, None), (1, None)]
        assert [await load_version_pages(tx, last.id, n) for n in (1, 2, 3)] == [
            ["The mill rests."],
            ["The mill grinds."],
            ["The mill burns."],
        ]
        with pytest.raises(Unknown, match="no version 4"):
            await load_version_pages(tx, last.id, 4)
        await add_again(tx, last.id)
    await mill.grind()
    async with mill.db.transaction() as tx:
        assert await tx.value("SELECT count(*) FROM former_version") == 2  # the same bytes anew tell nothing new
        await remove_source(tx, GLOBAL, last.urn)
        assert await tx.value("SELECT count(*) FROM former_version") == 0


# --- removal


async def test_a_preview_says_what_a_removal_then_takes_and_changes_nothing(mill: Mill) -> None:
    mail = await mill.ground("plan.eml", MAIL.replace(b"Grind.", b"Anna Berg of Nordwind GmbH came to Hamburg."))
    await mill.ground("other.md", "Anna Berg wrote.")
    everything = (
        "SELECT count(*) FROM document UNION ALL SELECT count(*) FROM task UNION ALL SELECT count(*) FROM mention"
    )
    before = await mill.rows(everything)
    async with mill.db.transaction() as tx:
        told = await preview_removal(tx, [mail.id])
    assert await mill.rows(everything) == before
    async with mill.db.transaction() as tx:
        assert await remove(tx, [mail.id]) == told
        with pytest.raises(Unknown):
            await preview_removal(tx, [mail.id])
    assert (told.documents, told.pages, told.nodes > 0, told.nodes_weaker) == (2, 2, True, 1)


# --- retries


async def test_one_failed_page_is_tried_again_by_itself(mill: Mill) -> None:
    whole = mill.handlers[ReadPage.kind]

    async def stumble(letters: list[ReadPage]) -> Any:
        for place, _ in enumerate(letters):
            yield place, Permanent("It is torn.")

    mill.handlers[ReadPage.kind] = on(ReadPage, stumble, batch=64)
    two = " ".join(["The mill of Anna Berg grinds flour all night long."] * 3)
    document = await mill.ground("two.pdf", pdf([two, two + " Again."]))
    assert document.status == "failed"
    mill.handlers[ReadPage.kind] = whole
    async with mill.db.transaction() as tx:
        (loaded,) = (await load_documents(tx, [document.id])).values()
        assert len((await retry_unit(tx, loaded, "ocr", 2)).tasks) == 1
        with pytest.raises(Refused, match="page 2 of document 1 has not failed"):
            await retry_unit(tx, loaded, "ocr", 2)
        with pytest.raises(Refused, match="A phase is one of"):
            await retry_unit(tx, loaded, "cooking", 2)
    await mill.grind()
    assert (await mill.look(document.id)).phases[0].done == 1
    async with mill.db.transaction() as tx:
        assert [page.number for page in await load_pages(tx, document.id)] == [2]


async def test_one_failed_chunk_or_all_of_a_page_are_tried_again(mill: Mill) -> None:
    whole = mill.handlers[EmbedChunk.kind]

    async def stumble(letters: list[EmbedChunk]) -> Any:
        return [Permanent("It cannot be embedded.") for _ in letters]

    mill.handlers[EmbedChunk.kind] = on(EmbedChunk, stumble, batch=64)
    text = "\n\n".join(f"# Part {n}\n\n" + "It grinds all night long. " * 40 for n in range(3))
    document = await mill.ground("mill.md", text)
    mill.handlers[EmbedChunk.kind] = whole
    async with mill.db.transaction() as tx:
        (loaded,) = (await load_documents(tx, [document.id])).values()
        assert len((await retry_unit(tx, loaded, "vector", 1, 0)).tasks) == 1
    await mill.grind()
    failed = document.chunks - 1
    assert (await mill.look(document.id)).phases[1].failed == failed
    async with mill.db.transaction() as tx:
        assert len((await retry_unit(tx, loaded, "vector", 1)).tasks) == failed
    await mill.grind()
    assert (await mill.look(document.id)).status == "completed"
