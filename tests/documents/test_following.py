"""Documents that somebody looks at while they are ground."""

import asyncio
import sys
from pathlib import Path

import pytest

from gristmill.db import Database
from gristmill.documents import DocumentsNow, add_file, follow_documents, following, load_overview, load_overview_of
from gristmill.documents.following import SERVED_SOON, SERVED_WITHIN, Attendance, choose_pause
from gristmill.errors import Refused
from gristmill.ids import DocumentId
from gristmill.scopes import GLOBAL, Scope

sys.path.insert(0, str(Path(__file__).parents[1] / "queue"))
from engine import buried

in_the_loop_of_the_models = pytest.mark.asyncio(loop_scope="session")


async def add(db: Database, path: Path, scope: Scope = GLOBAL) -> DocumentId:
    await asyncio.to_thread(path.write_text, f"# {path.stem}\n")
    added = await add_file(db, path, scope, max_bytes=10**6)
    assert added.document is not None
    return added.document


@in_the_loop_of_the_models
async def test_a_look_is_taken_until_all_documents_have_ended(db: Database, tmp_path: Path) -> None:
    first, second = [await add(db, tmp_path / name) for name in ("a.md", "b.md")]
    looks: list[DocumentsNow] = []
    async for look in follow_documents(db, [first, second], print):
        looks.append(look)
        if len(looks) < 3:
            async with db.transaction() as tx:
                done = "UPDATE document SET completed_at = clock() WHERE id = %(id)s"
                await tx.execute(done, id=(first, second)[len(looks) - 1])
    assert [[one.id for one in look.open] for look in looks] == [[first, second], [first, second], [second]]
    assert [[one.status for one in look.all] for look in looks] == [
        ["pending", "pending"],
        ["completed", "pending"],
        ["completed", "completed"],
    ]


@in_the_loop_of_the_models
async def test_documents_that_nobody_works_on_are_not_waited_for(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "SERVED_SOON", -1.0)
    monkeypatch.setattr(following, "SERVED_WITHIN", 0.0)
    looks = follow_documents(db, [await add(db, tmp_path / "a.md")], print)
    assert (await anext(looks)).is_unattended
    with pytest.raises(Refused, match="Nobody works on these documents"):
        await anext(looks)


@in_the_loop_of_the_models
async def test_a_caller_with_workers_of_its_own_waits_until_they_have_started(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "SERVED_WITHIN", 0.0)
    looks = follow_documents(db, [await add(db, tmp_path / "a.md")], print, has_workers=True)
    assert [(await anext(looks)).all[0].status for _ in range(2)] == ["pending", "pending"]
    await looks.aclose()


@in_the_loop_of_the_models
async def test_an_overview_shows_the_newest_and_counts_all(db: Database, tmp_path: Path) -> None:
    documents = [await add(db, tmp_path / f"{name}.md") for name in "abc"]
    async with db.transaction() as tx:
        seen = await load_overview(tx, most=2)
    assert [one.id for one in seen.documents] == documents[:0:-1]
    assert seen.tally.documents == 3


@in_the_loop_of_the_models
async def test_an_overview_shows_what_has_errors_however_old_it_is(db: Database, tmp_path: Path) -> None:
    documents = [await add(db, tmp_path / f"{name}.md") for name in "abcd"]
    async with db.transaction() as tx:
        await buried(tx, 1, "it is no text", queues=("documents",))
        everything = await load_overview(tx, most=2)
        of_folder = await load_overview_of(tx, GLOBAL, tmp_path, most=2)
    assert {one.id for one in everything.documents} == {one.id for one in of_folder.documents}
    assert {one.id for one in of_folder.documents} == {documents[0], *documents[2:]}
    assert everything.tally.errors == of_folder.tally.errors == 1


@in_the_loop_of_the_models
async def test_an_overview_of_a_folder_leaves_out_other_folders_and_clients(db: Database, tmp_path: Path) -> None:
    for name in ("in", "in/deeper", "in-between"):
        (tmp_path / name).mkdir()
    ours = [await add(db, tmp_path / "in" / "a.md"), await add(db, tmp_path / "in" / "deeper" / "b.md")]
    await add(db, tmp_path / "in-between" / "c.md")
    theirs = await add(db, tmp_path / "in" / "d.md", Scope("acme"))
    async with db.transaction() as tx:
        seen = await load_overview_of(tx, GLOBAL, tmp_path / "in", most=9)
        of_client = await load_overview_of(tx, Scope("acme"), None, most=9)
    assert ([one.id for one in seen.documents], seen.tally.documents) == (ours[::-1], 2)
    assert ([one.id for one in of_client.documents], of_client.tally.documents) == ([theirs], 1)


def test_a_worker_that_dies_is_given_time_for_a_successor() -> None:
    attendance = Attendance(0, SERVED_WITHIN)
    moments = (SERVED_SOON, SERVED_SOON + 1, SERVED_SOON + 2)
    assert [attendance.has_just_lapsed(now) for now in moments] == [False, True, False]
    assert attendance.note(False, SERVED_WITHIN - 1)
    assert attendance.note(True, SERVED_WITHIN + 1)
    assert attendance.note(False, 2 * SERVED_WITHIN)
    assert not attendance.note(False, 2 * SERVED_WITHIN + 1)


@pytest.mark.parametrize(("took", "waits"), [(0.0, 0.3), (0.01, 0.3), (1.0, 9.0)])
def test_looking_at_many_documents_takes_no_more_than_a_tenth_of_the_time(took: float, waits: float) -> None:
    assert choose_pause(took) == waits
