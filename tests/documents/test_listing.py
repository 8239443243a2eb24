"""Which documents are listed, and under which names."""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from gristmill.db import Database, Tx
from gristmill.documents import (
    DocumentFilter,
    Order,
    Progress,
    add_file,
    count_documents,
    follow_documents,
    list_documents,
    order_documents,
    preview_removal,
    remove,
)
from gristmill.documents.listing import SQL
from gristmill.documents.overview import load_overview, load_overview_of
from gristmill.documents.tally import fold_tally
from gristmill.documents.written import SQL as WRITTEN
from gristmill.ids import DocumentId
from gristmill.scopes import GLOBAL, Scope, scope_id
from plans import count_rows

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


async def test_a_note_about_a_document_is_neither_listed_nor_counted(db: Database, tmp_path: Path) -> None:
    async def check(documents: int, completed: int) -> None:
        async with db.transaction() as tx:
            tally, board = await count_documents(tx), await load_overview_of(tx, GLOBAL, None, 50)
            lists = [await list_documents(tx), board.documents, (await load_overview(tx, 50)).documents]
        looks = follow_documents(db, [letter], print)
        assert [one.id for one in (await anext(looks)).all] == [letter]
        await looks.aclose()
        assert [len(one) for one in lists] == [documents] * 3
        assert (tally.documents, tally.completed) == (board.tally.documents, board.tally.completed)
        assert (tally.documents, tally.completed) == (documents, completed)

    (tmp_path / "letter.txt").write_text("The mill.")
    await add_file(db, tmp_path / "letter.txt", GLOBAL, max_bytes=MOST)
    letter = (await listed(db))[0].id
    async with db.transaction() as tx:
        note = await write_down(tx, "note", letter)
    await check(1, 0)
    for container, count in ((None, 2), (letter, 1)):
        async with db.transaction() as tx:
            await tx.execute("UPDATE document SET container = %(to)s WHERE id = %(id)s", to=container, id=note)
        await check(count, count - 1)
    async with db.transaction() as tx:
        await write_down(tx, "memo", None)
    await check(2, 1)
    async with db.transaction() as tx:
        planned, gone = await preview_removal(tx, [letter]), await remove(tx, [letter])
    assert (planned.documents, gone.documents) == (1, 1)
    async with db.transaction() as tx:
        assert [one.name for one in await list_documents(tx)] == ["memo"]
        assert (await count_documents(tx)).documents == 1


async def write_down(tx: Tx, urn: str, container: DocumentId | None) -> DocumentId:
    """A text that a program writes down itself, as a note about a document or for itself."""
    given = {
        "scope": await scope_id(tx, GLOBAL),
        "urn": urn,
        "hash": sha256(urn.encode()).digest(),
        "container": container,
    }
    await tx.execute("INSERT INTO blob (hash, size) VALUES (%(hash)s, 0)", hash=given["hash"])
    about = {"version": 1, "name": urn, "title": urn, "type": "note", "meta": "{}", "written_at": None}
    return await tx.only_value(WRITTEN["make_document"], DocumentId, **given, **about)


async def put(db: Database, folder: Path, names: Sequence[str], scope: Scope) -> None:
    for name in names:
        (folder / name).write_text(f"note {name} of {scope}")
        await add_file(db, folder / name, scope, max_bytes=MOST)


async def walk(db: Database, order: Order, seen_from: Scope | None = None, **wanted: Any) -> list[str]:
    """All names, two at a time."""
    found, start = list[str](), None
    while True:
        async with db.reading(seen_from=seen_from) as tx:
            portion = await order_documents(tx, DocumentFilter(**wanted), order, start=start, limit=2)
        found += [one.name for one in portion.documents]
        if (start := portion.next) is None:
            return found


async def test_all_documents_are_listed_by_age_and_by_name_portion_by_portion(db: Database, tmp_path: Path) -> None:
    await put(db, tmp_path, ["b.txt", "D.txt", "a.txt"], GLOBAL)
    await put(db, tmp_path, ["C.txt", "b.txt"], Scope("acme"))
    assert await walk(db, "oldest") == ["b.txt", "D.txt", "a.txt", "C.txt", "b.txt"]
    assert await walk(db, "name") == ["a.txt", "b.txt", "b.txt", "C.txt", "D.txt"]
    assert await walk(db, "-name") == ["D.txt", "C.txt", "b.txt", "b.txt", "a.txt"]
    assert await walk(db, "name", client="acme") == ["b.txt", "C.txt"]
    assert await walk(db, "name", name="B.") == ["b.txt", "b.txt"]
    assert await walk(db, "-name", status="pending") == await walk(db, "-name")
    assert await walk(db, "name", status="completed") == await walk(db, "name", type="pdf") == []
    assert await walk(db, "name", seen_from=Scope("acme")) == await walk(db, "name")
    assert await walk(db, "name", seen_from=Scope("beta")) == ["a.txt", "b.txt", "D.txt"]


async def test_what_an_ordered_list_costs_does_not_grow_with_the_documents(db: Database, tmp_path: Path) -> None:
    await put(db, tmp_path, ["a.txt"], Scope("acme"))
    async with db.transaction() as tx:
        own = await scope_id(tx, Scope("acme"))
        await tx.execute(MANY, scope=own)
        await tx.execute("ANALYZE document")
        given = {"type": None, "container": None, "top": False, "name": "", "completed": False, "scan": 51, "most": 51}
        asked = {"scopes": [1, own], "id": 0, "after": "", "step": 1, "before": 2**62, **given}
        for name in ("oldest", "by_name", "by_name_falling", "newest_of_scopes"):
            plan = await tx.value("EXPLAIN (ANALYZE, FORMAT JSON) " + SQL[name], **asked)
            assert count_rows(plan[0]["Plan"]) < 1_000, name


MANY = """
INSERT INTO document (scope, urn, version, name, hash, task, opening)
SELECT %(scope)s, 'many:' || n, 1, 'note ' || n, d.hash, d.task, d.opening FROM document d, generate_series(1, 20000) n
"""
