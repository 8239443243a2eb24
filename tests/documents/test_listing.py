"""Which documents are listed, and under which names."""

import os
from pathlib import Path

import pytest

from gristmill.db import Database
from gristmill.documents import Progress, add_file, count_documents, list_documents, remove
from gristmill.documents.tally import fold_tally
from gristmill.ids import DocumentId
from gristmill.scopes import GLOBAL, Scope, scope_id

MOST = 1 << 20

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def listed(db: Database, **which: object) -> list[Progress]:
    async with db.transaction() as tx:
        return await list_documents(tx, **which)  # pyright: ignore[reportArgumentType]


async def test_documents_are_listed_by_client_project_and_status_the_newest_first(db: Database, tmp_path: Path) -> None:
    for n, scope in enumerate((GLOBAL, Scope("acme"), Scope("acme", "moon"), Scope("zenith", "moon"))):
        (tmp_path / f"{n}.txt").write_text(f"note {n}")
        await add_file(db, tmp_path / f"{n}.txt", scope, max_bytes=MOST)
    assert [one.name for one in await listed(db)] == ["3.txt", "2.txt", "1.txt", "0.txt"]
    assert [one.name for one in await listed(db, client="acme")] == ["2.txt", "1.txt"]
    assert [one.name for one in await listed(db, client="acme", project="moon")] == ["2.txt"]
    assert [one.name for one in await listed(db, client="nobody")] == []
    assert [one.name for one in await listed(db, client="")] == ["0.txt"]
    assert len(await listed(db, status="pending")) == 4
    assert await listed(db, status="failed") == await listed(db, status="completed") == []
    third = (await listed(db))[1].id
    assert [one.name for one in await listed(db, before=DocumentId(third), limit=1)] == ["1.txt"]


async def test_any_name_that_a_file_can_have_is_taken(db: Database, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9 \x1b[2J[b].txt")
    path.write_text("Good day.")
    added = await add_file(db, path, GLOBAL, max_bytes=MOST)
    assert (added.status, added.name) == ("added", "caf\ufffd [2J[b].txt")
    assert (await add_file(db, path, GLOBAL, max_bytes=MOST)).status == "unchanged"


async def test_all_documents_are_counted_without_looking_at_them(db: Database, tmp_path: Path) -> None:
    async def counted() -> tuple[int, int]:
        async with db.transaction() as tx:
            found = await count_documents(tx)
            real = await tx.one("SELECT count(*) AS documents, count(completed_at) AS completed FROM document")
        assert (found.documents, found.completed) == real
        return found.documents, found.completed

    for n, scope in enumerate((GLOBAL, Scope("acme"), GLOBAL)):
        (tmp_path / f"{n}.txt").write_text(f"note {n}")
        await add_file(db, tmp_path / f"{n}.txt", scope, max_bytes=MOST)
    assert await counted() == (3, 0)
    async with db.transaction() as tx:
        await tx.execute("UPDATE document SET completed_at = clock() WHERE name = '0.txt'")
        await tx.execute("UPDATE document SET completed_at = completed_at, title = 'x'")
    assert await counted() == (3, 1)
    async with db.transaction() as tx:
        scope = await scope_id(tx, GLOBAL)
        await fold_tally(tx, scope, most=2)
        assert await tx.value("SELECT count(*) FROM document_tally WHERE scope = 1") == 1
    assert await counted() == (3, 1)
    async with db.transaction() as tx:
        await remove(tx, [(await list_documents(tx))[-1].id])
    assert await counted() == (2, 0)
