"""Clients work on their own documents by the database's leave, and learn nothing of each other."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from psycopg.errors import InsufficientPrivilege

from documents.grindstone import Mill, a_mill
from gristmill.db import Database, Tx
from gristmill.documents import (
    Item,
    Note,
    WholeText,
    add_again,
    blobs,
    count_documents,
    find_with_parts,
    list_documents,
    list_failures,
    list_pages,
    list_setbacks,
    list_skipped,
    load_documents,
    load_progress,
    names_of,
    remove,
    remove_source,
    retry,
    stage,
    store,
    take_in,
)
from gristmill.documents.blobs import hash_of
from gristmill.documents.letters import ReadPage
from gristmill.documents.model import owner_of
from gristmill.documents.notebook import prepare_note, prepare_text
from gristmill.documents.spool import SQL as SPOOL
from gristmill.errors import GristmillError, Permanent, Refused
from gristmill.ids import DocumentId
from gristmill.models import FakeEmbedder, ModelPool
from gristmill.queue import on
from gristmill.scopes import GLOBAL, Scope, scope_id

pytestmark = pytest.mark.asyncio(loop_scope="session")
ACME, ZENITH = Scope("acme"), Scope("zenith")
NOTE = b"# Plan\n\nAnna Berg of Nordwind GmbH signed the contract NW-2024-017 in Hamburg on 3 May 2024.\n"
LONG = b"The mill grinds all night.\n" * 100_000


@pytest.fixture
def mill(db: Database, models: ModelPool, tmp_path: Path) -> Mill:
    return a_mill(db, tmp_path, models)


async def brought(db: Database, scope: Scope, content: Any = NOTE) -> DocumentId:
    async with db.transaction(seen_from=scope) as tx:
        one = await take_in(tx, Item("file:///plan.md", "plan.md", content, scope))
    assert (one.status, one.document is None) == ("added", False)
    assert one.document is not None
    return one.document


async def read(tx: Tx, document: DocumentId) -> list[bytes]:
    hashes = await tx.all("SELECT hash FROM document WHERE id = %(id)s", id=document)
    return [row.bytes for one in hashes for row in await tx.all(SPOOL["piece"], hash=one.hash, n=0)]


async def test_two_clients_with_the_same_file_have_it_each_by_itself(mill: Mill) -> None:
    db = mill.db
    ours, theirs = await brought(db, ACME), await brought(db, ZENITH)
    await mill.grind()
    for scope, own, other in ((ACME, ours, theirs), (ZENITH, theirs, ours)):
        async with db.transaction(seen_from=scope) as tx:
            assert [one.id for one in await list_documents(tx)] == [own]
            assert (await count_documents(tx)).documents == 1
            assert await read(tx, own) == [NOTE]
            assert await read(tx, other) == []
            assert (await take_in(tx, Item("file:///plan.md", "plan.md", NOTE, scope))).status == "unchanged"
            assert await tx.value("SELECT count(*) FROM blob") == 1
    async with db.transaction(seen_from=ACME) as tx:
        gone = await remove(tx, [ours])
        assert (gone.documents, gone.pages, gone.chunks) == (1, 1, 1)
        assert await tx.value("SELECT count(*) FROM blob") == 0
    async with db.transaction(seen_from=ZENITH) as tx:
        assert await read(tx, theirs) == [NOTE]
        assert (await remove_source(tx, ZENITH, "file:///plan.md")).documents == 1
    assert await mill.rows("SELECT id FROM blob") == []


async def test_two_clients_may_stage_the_same_bytes(db: Database) -> None:
    for scope in (ACME, ZENITH):
        async with staged_file(db) as staged:
            document = await brought(db, scope, staged)
        async with db.transaction(seen_from=scope) as tx:
            assert await read(tx, document) == [LONG[: 1 << 20]]


@asynccontextmanager
async def staged_file(db: Database) -> AsyncIterator[Any]:
    async def pieces() -> AsyncIterator[bytes]:
        yield LONG

    yield await stage(db, pieces())


async def test_nobody_gets_the_bytes_of_another_by_their_hash(db: Database) -> None:
    async with staged_file(db) as staged:
        await brought(db, ZENITH, staged)
    with pytest.raises(GristmillError, match="stage them again"):
        await brought(db, ACME, staged)  # its pin was used up


MAKE = """
INSERT INTO document (scope, urn, version, hash, name, task, opening)
VALUES (%(own)s, 'urn:copy', 1, %(hash)s, 'copy', 0, 0) RETURNING id
"""
REFUSAL = "bytes that its client has handed in"


async def test_a_client_makes_no_document_of_a_hash_that_it_merely_knows(db: Database) -> None:
    await brought(db, ZENITH)
    for hash_ in (hash_of(NOTE), hash_of(b"bytes that nobody has")):
        with pytest.raises(InsufficientPrivilege, match=REFUSAL):
            async with db.transaction(seen_from=ACME) as tx:
                await tx.value(MAKE, own=await scope_id(tx, ACME), hash=hash_)


async def test_a_client_changes_no_document_of_its_own_to_a_hash_that_it_merely_knows(db: Database) -> None:
    await brought(db, ZENITH)
    ours = await brought(db, ACME, b"# Ours")
    with pytest.raises(InsufficientPrivilege, match=REFUSAL):
        async with db.transaction(seen_from=ACME) as tx:
            await tx.execute("UPDATE document SET hash = %(hash)s WHERE id = %(id)s", id=ours, hash=hash_of(NOTE))


async def test_a_claim_ends_with_its_transaction(db: Database) -> None:
    await brought(db, ZENITH)
    async with db.transaction(seen_from=ACME) as tx:
        await blobs.keep_bytes(tx, NOTE)
    with pytest.raises(InsufficientPrivilege, match=REFUSAL):
        async with db.transaction(seen_from=ACME) as tx:
            await tx.value(MAKE, own=await scope_id(tx, ACME), hash=hash_of(NOTE))
    await blobs.clear_staged(db)
    async with db.transaction() as tx:
        assert await tx.value("SELECT count(*) FROM claimed_blob") == 0


async def test_a_client_makes_another_document_of_bytes_that_it_sees(db: Database) -> None:
    await brought(db, GLOBAL)
    async with db.transaction(seen_from=ACME) as tx:
        document = await tx.value(MAKE, own=await scope_id(tx, ACME), hash=hash_of(NOTE))
        assert await read(tx, document) == [NOTE]


WRITES = (
    "INSERT INTO blob VALUES (sha256('x'), 1)",
    "DELETE FROM blob",
    "DELETE FROM blob_piece",
    "TABLE staged_blob",
    "TABLE claimed_blob",
)


@pytest.mark.parametrize("statement", WRITES)
async def test_a_client_cannot_touch_the_tables_of_bytes(db: Database, statement: Any) -> None:
    await brought(db, ACME)
    with pytest.raises(Exception, match="permission denied"):
        async with db.transaction(seen_from=ACME) as tx:
            await tx.execute(statement)


async def test_a_client_writes_down_texts_and_notes_of_its_own(db: Database) -> None:
    embedder, text = FakeEmbedder(), "The mill belongs to Ann."
    prepared = await prepare_text(db, embedder, text, "Mill"), await prepare_note(db, embedder, text)
    for scope in (ACME, ZENITH):
        async with db.transaction(seen_from=scope) as tx:
            whole = await take_in(tx, WholeText("wiki:7", "Mill", text, prepared[0], scope))
            note = await take_in(tx, Note("wiki:7", text, prepared[1], scope))
            assert (whole.status, note.status, whole.document) == ("added", "changed", note.document)
    async with db.transaction(seen_from=ACME) as tx:
        assert (await remove_source(tx, ACME, "wiki:7")).chunks == 2
        assert await list_documents(tx) == []
    async with db.transaction(seen_from=ZENITH) as tx:
        assert [one.summary for one in await list_documents(tx)] == ["2 pages, 2 chunks"]


async def test_a_client_retries_what_has_failed_of_its_own(mill: Mill) -> None:
    good = mill.handlers[ReadPage.kind]

    async def fail(letter: ReadPage) -> None:
        raise Permanent("the glass is broken")

    mill.handlers[ReadPage.kind] = on(ReadPage, fail)
    document = await brought(mill.db, ACME)
    await mill.grind()
    async with mill.db.transaction(seen_from=ACME) as tx:
        assert [one.error for one in await list_failures(tx, document)] == ["the glass is broken"]
        assert len((await retry(tx, (await load_documents(tx, [document]))[document])).tasks) == 1
    mill.handlers[ReadPage.kind] = good
    await mill.grind()
    assert (await mill.look(document)).status == "completed"


async def test_a_client_has_its_own_made_anew(mill: Mill) -> None:
    document = await brought(mill.db, ACME)
    await mill.grind()
    async with mill.db.transaction(seen_from=ACME) as tx:
        new = await add_again(tx, document)
    await mill.grind()
    async with mill.db.transaction(seen_from=ACME) as tx:
        assert [(one.id, one.status) for one in await list_documents(tx)] == [(new, "completed")]


Asked = Callable[[Tx, DocumentId], Awaitable[Any]]


async def retry_by_id(tx: Tx, id_: DocumentId) -> Any:
    return await retry(tx, (await load_documents(tx, [id_]))[id_])


BY_ID: dict[str, Asked] = {
    "load": lambda tx, id_: load_documents(tx, [id_]),
    "progress": lambda tx, id_: load_progress(tx, [id_]),
    "with_parts": lambda tx, id_: find_with_parts(tx, [id_]),
    "pages": list_pages,
    "page text": lambda tx, id_: store.load_texts(tx, [(id_, 1)]),
    "bytes": read,
    "failures": list_failures,
    "setbacks": list_setbacks,
    "skipped": list_skipped,
    "names_of": lambda tx, id_: names_of(tx, [owner_of(id_)]),
    "retry": retry_by_id,
    "remove": lambda tx, id_: remove(tx, [id_]),
    "add_again": add_again,
    "a part in it": lambda tx, id_: take_in(tx, Item("x", "x", b"x", ACME, container=id_)),
}


@pytest.mark.parametrize("asked", BY_ID)
async def test_another_client_s_document_is_as_one_that_does_not_exist(mill: Mill, asked: str) -> None:
    theirs, nothing = await brought(mill.db, ZENITH), DocumentId(4_711)
    await mill.grind()
    answers = [await answered(mill.db, BY_ID[asked], id_) for id_ in (theirs, nothing)]
    assert answers[0].replace(str(theirs), "ID") == answers[1].replace(str(nothing), "ID")
    assert (await mill.look(theirs)).status == "completed"


async def answered(db: Database, ask: Asked, id_: DocumentId) -> str:
    try:
        async with db.transaction(seen_from=ACME) as tx:
            return repr(await ask(tx, id_))
    except (Refused, KeyError) as error:
        return repr(error)


async def test_everybody_s_documents_are_read_by_all_and_removed_by_no_client(mill: Mill) -> None:
    document = await brought(mill.db, GLOBAL)
    await mill.grind()
    async with mill.db.transaction(seen_from=ACME) as tx:
        assert [one.id for one in await list_documents(tx)] == [document]
        assert await read(tx, document) == [NOTE]
    with pytest.raises(Refused, match="There is no such document"):
        async with mill.db.transaction(seen_from=ACME) as tx:
            await remove(tx, [document])
    assert (await mill.look(document)).status == "completed"
