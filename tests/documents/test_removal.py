"""Removing documents while others remove, replace or add the same ones."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from uuid import UUID

import pytest

from gristmill.db import Database, Tx
from gristmill.documents import Item, Removed, Staged, add_again, add_file, load_documents, remove, take_in
from gristmill.documents.blobs import hash_of
from gristmill.documents.phases import opening
from gristmill.documents.reading import Part
from gristmill.documents.take_in import add_parts
from gristmill.documents.urgency import ORDINARY
from gristmill.errors import Refused, Transient
from gristmill.ids import DocumentId
from gristmill.scopes import GLOBAL

pytestmark = pytest.mark.asyncio(loop_scope="session")
SOMEBODY_WAITS = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


async def added(db: Database, path: Path, text: str) -> DocumentId:
    path.write_text(text)  # noqa: ASYNC240 a few bytes
    one = await add_file(db, path, GLOBAL, max_bytes=1 << 20)
    assert one.document is not None
    return one.document


async def removed(db: Database, document: DocumentId) -> Removed:
    async with db.transaction() as tx:
        return await remove(tx, [document])


async def made_anew(db: Database, document: DocumentId) -> None:
    async with db.transaction() as tx:
        await add_again(tx, document)


async def held_up(db: Database, work: Awaitable[None] | Awaitable[Removed]) -> "asyncio.Task[Removed | None]":
    """Begins it, and comes back when it waits for somebody's lock."""
    task = asyncio.ensure_future(work)
    while True:
        async with db.transaction() as tx:
            if await tx.all(SOMEBODY_WAITS):
                return task  # pyright: ignore[reportReturnType]
        await asyncio.sleep(0.01)


async def test_of_two_who_remove_a_document_at_the_same_time_one_is_told_that_it_is_gone(
    db: Database, tmp_path: Path
) -> None:
    document = await added(db, tmp_path / "note.md", "Good day.")
    async with db.transaction() as tx:
        assert (await remove(tx, [document])).documents == 1
        await tx.flush()
        other = await held_up(db, removed(db, document))
    with pytest.raises(Refused, match="There is no such document"):
        await other


async def test_whoever_makes_a_document_anew_while_another_removes_it_is_told_that_it_is_gone(
    db: Database, tmp_path: Path
) -> None:
    document = await added(db, tmp_path / "note.md", "Good day.")
    async with db.transaction() as tx:
        await remove(tx, [document])
        await tx.flush()
        other = await held_up(db, made_anew(db, document))
    with pytest.raises(Refused, match=f"There is no document {document}."):
        await other


async def test_a_part_made_anew_while_its_container_is_replaced_lies_in_the_new_one(
    db: Database, tmp_path: Path
) -> None:
    old = await added(db, tmp_path / "mail.eml", "Subject: Plan")
    async with db.transaction() as tx:
        (document,) = (await load_documents(tx, [old])).values()
        await add_parts(tx, [(document, Part("plan.md", b"# Plan", "attachment=1"), ORDINARY)])
        part: DocumentId = await tx.value("SELECT id FROM document WHERE container IS NOT NULL")
    new = await added(db, tmp_path / "mail.eml", "Subject: The plan")
    async with db.transaction() as tx:
        await tx.execute("UPDATE document SET container = %(new)s WHERE id = %(part)s", new=new, part=part)
        await tx.execute("DELETE FROM document WHERE id = %(old)s", old=old)
        await tx.flush()
        other = await held_up(db, made_anew(db, part))
    await other
    async with db.transaction() as tx:
        rows = await tx.all("SELECT container FROM document WHERE name = 'plan.md'")
    assert [row.container for row in rows] == [new, new]


async def test_a_document_that_is_removed_while_another_makes_it_anew_leaves_the_new_one(
    db: Database, tmp_path: Path
) -> None:
    document = await added(db, tmp_path / "note.md", "Good day.")
    async with db.transaction() as tx:
        new = await add_again(tx, document)
        await tx.flush()
        removing = await held_up(db, removed(db, document))
    await removing
    async with db.transaction() as tx:
        assert list(await load_documents(tx, [document, new])) == [new]


async def test_staged_bytes_whose_last_document_is_removed_meanwhile_must_be_staged_again(
    db: Database, tmp_path: Path
) -> None:
    document = await added(db, tmp_path / "note.md", "Good day.")
    staged = Staged(hash_of(b"Good day."), 9, UUID(int=7))  # its pin was used up

    async def bring() -> None:
        async with db.transaction() as tx:
            await take_in(tx, Item("urn:other", "other.md", staged))

    async with db.transaction() as tx:
        await remove(tx, [document])
        await tx.flush()
        bringing = await held_up(db, bring())
    with pytest.raises(Transient, match="stage them again"):
        await bringing


async def test_a_version_is_complete_also_when_somebody_else_just_removed_the_one_before(
    db: Database, tmp_path: Path
) -> None:
    old = await added(db, tmp_path / "note.md", "Good day.")
    new = await added(db, tmp_path / "note.md", "Good night.")

    async def finish() -> None:
        async with db.transaction() as tx:
            (document,) = (await load_documents(tx, [new])).values()
            await opening._finish(tx, document=document)  # pyright: ignore[reportPrivateUsage]

    async with db.transaction() as tx:
        await remove(tx, [old])
        await tx.flush()
        finishing = await held_up(db, finish())
    await finishing
    async with db.transaction() as tx:
        assert await completed(tx) == [new]


async def test_removing_a_mail_takes_its_locks_in_the_order_in_which_workers_settle(
    db: Database, tmp_path: Path
) -> None:
    mail = await added(db, tmp_path / "mail.eml", "Subject: Plan")
    async with db.transaction() as tx:
        (document,) = (await load_documents(tx, [mail])).values()
        await add_parts(tx, [(document, Part("plan.md", b"# Plan", "attachment=1"), ORDINARY)])
    async with db.transaction() as settling:
        first, second = [row.opening for row in await settling.all("SELECT opening FROM document ORDER BY id")]
        await settling.all(HOLD, id=first)
        removing = await held_up(db, removed(db, mail))
        await settling.all(HOLD, id=second)
    gone = await removing
    assert gone is not None
    assert gone.documents == 2


HOLD = "SELECT FROM ticket WHERE id = %(id)s FOR UPDATE"


async def completed(tx: Tx) -> list[DocumentId]:
    return [row.id for row in await tx.all("SELECT id FROM document WHERE completed_at IS NOT NULL")]
