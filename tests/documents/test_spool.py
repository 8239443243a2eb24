"""Copies of files on disk: opened once, kept while somebody reads them, gone with their documents."""

import asyncio
import os
from pathlib import Path

import pytest
import pytest_asyncio

from documents.grindstone import Mill, a_mill
from gristmill.db import Database
from gristmill.documents import remove
from gristmill.documents.blobs import hash_of
from gristmill.documents.letters import ReadPage
from gristmill.documents.parsers import Parsers
from gristmill.documents.phases.ocr import AGAIN, LATER, choose_fitting, read_pages
from gristmill.documents.reading import Limits, inspect, plain, read
from gristmill.documents.spool import Spool, clear_copies
from gristmill.ids import DocumentId
from gristmill.models import ModelPool
from gristmill.queue import Skip

pytestmark = pytest.mark.asyncio(loop_scope="session")

TABLE = "id,item,price\n" + "".join(f"{n},Flour of the sort {n},{n}.50\n" for n in range(2_000))


@pytest_asyncio.fixture(loop_scope="session")
async def mill(db: Database, tmp_path: Path, models: ModelPool) -> Mill:
    return a_mill(db, tmp_path, models)


async def test_a_file_is_opened_once_for_all_its_pages_however_often_it_is_asked_for(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    openings: list[str] = []
    monkeypatch.setattr(plain.tables, "_open_file", lambda path: openings.append(path) or plain._table(path))
    await mill.add("stock.csv", TABLE)
    spool = Spool(mill.db, mill.folder / "spool", limit=1 << 20)
    path = await spool.fetch(hash_of(TABLE.encode()), len(TABLE))
    pages = inspect(str(path), "stock.csv", Limits()).pages
    for number in range(1, pages + 1):
        path = await spool.fetch(hash_of(TABLE.encode()), len(TABLE))
        assert read(str(path), "csv", number, Limits()).text
    assert (pages, len(openings)) == (5, 1)


def named(texts: list[str]) -> set[str]:
    return {hash_of(text.encode()).hex() for text in texts}


async def test_what_a_batch_is_about_to_read_makes_no_room_for_the_rest_of_it(mill: Mill) -> None:
    texts = [f"{n} " + "The mill grinds. " * 20 for n in range(60)]
    for n, text in enumerate(texts):
        await mill.add(f"{n}.txt", text)
    spool = Spool(mill.db, mill.folder / "small", limit=4_000)
    with spool.hold([hash_of(text.encode()) for text in texts[:5]]):
        for text in texts:
            await spool.fetch(hash_of(text.encode()), len(text))
        assert named(texts[:5]) <= set(os.listdir(mill.folder / "small"))
    for text in texts[5:]:
        await spool.fetch(hash_of(text.encode()), len(text))
    assert not named(texts[:5]) & set(os.listdir(mill.folder / "small")), "when it was read, it is like all others"


async def test_copies_that_are_coming_at_the_same_time_keep_to_their_room(mill: Mill) -> None:
    texts = [f"{n} " + "The mill grinds. " * 2_000 for n in range(12)]
    for n, text in enumerate(texts):
        await mill.add(f"{n}.txt", text)
    folder = mill.folder / "small"
    spool = Spool(mill.db, folder, limit=100_000)
    await spool.fetch(hash_of(texts[0].encode()), len(texts[0]))
    await spool.fetch(hash_of(texts[1].encode()), len(texts[1]))
    await asyncio.gather(*(spool.fetch(hash_of(text.encode()), len(text)) for text in texts[2:4]))
    assert sum(entry.stat().st_size for entry in folder.iterdir()) <= 100_000


async def opened(mill: Mill, texts: list[str]) -> list[ReadPage]:
    """Their first pages, to be read next."""
    added = [await mill.add(f"{n}.txt", text) for n, text in enumerate(texts)]
    async with mill.db.transaction() as tx:
        await tx.execute("UPDATE document SET type = 'text'")
    return [ReadPage(one.document, 1) for one in added if one.document is not None]


def parsers_of(mill: Mill) -> Parsers:
    return Parsers(mill.models.reading_processes, mill.models.embedding_processes, mill.settings.documents, 254)


async def test_more_files_than_there_is_room_for_are_read_a_few_at_a_time(mill: Mill) -> None:
    texts = [f"{n} " + "The mill grinds. " * 200 for n in range(12)]
    spool = Spool(mill.db, mill.folder / "small", limit=40_000)
    letters, rounds = await opened(mill, texts), list[int]()
    while letters:
        answers = {n: one async for n, one in read_pages(letters, db=mill.db, parsers=parsers_of(mill), spool=spool)}
        assert all(isinstance(one, Skip) or one is LATER for one in answers.values()), answers
        letters = [letters[n] for n, one in sorted(answers.items()) if one is LATER]
        rounds.append(len(letters))
        assert sum(entry.stat().st_size for entry in (mill.folder / "small").iterdir()) <= 40_000
    assert rounds == [10, 8, 6, 4, 2, 0]


async def test_a_page_whose_copy_made_room_for_others_is_asked_for_again(mill: Mill) -> None:
    class Emptied(Spool):
        """As if another worker on this machine needed the room."""

        async def fetch(self, hash_: bytes, size: int) -> Path:
            path = await super().fetch(hash_, size)
            path.unlink()
            return path

    letters = await opened(mill, ["The mill grinds."])
    spool = Emptied(mill.db, mill.folder / "emptied", limit=1 << 20)
    answers = [one async for one in read_pages(letters, db=mill.db, parsers=parsers_of(mill), spool=spool)]
    assert answers == [(0, AGAIN)]


@pytest.mark.parametrize(
    ("sizes", "room", "taken"),
    [
        ({}, 10, []),
        ({1: 100}, 10, [1]),
        ({1: 5, 2: 5, 3: 1}, 10, [1, 2]),
        ({1: 5, 2: 6, 3: 1}, 10, [1]),
    ],
)
async def test_a_batch_takes_the_first_files_that_fit(
    sizes: dict[DocumentId, int], room: int, taken: list[int]
) -> None:
    assert choose_fitting(sizes, room) == taken


async def test_copies_of_what_was_removed_go_and_no_others(mill: Mill) -> None:
    texts = ["The mill grinds rye.", "The weir holds."]
    first, _ = [await mill.add(f"{n}.txt", text) for n, text in enumerate(texts)]
    folder = mill.folder / "spool"
    for text in texts:
        await Spool(mill.db, folder, limit=1 << 20).fetch(hash_of(text.encode()), len(text))
    (folder / "coming-whole").touch()
    assert first.document is not None
    async with mill.db.transaction() as tx:
        await remove(tx, [first.document])
    await clear_copies(mill.db, folder)
    assert set(os.listdir(folder)) == {*named(texts[1:]), "coming-whole"}
    await clear_copies(mill.db, mill.folder / "none")


async def test_a_worker_clears_copies_also_of_what_others_removed(mill: Mill) -> None:
    folder = mill.folder / "spool"
    folder.mkdir()
    (folder / hash_of(b"removed elsewhere").hex()).touch()
    await mill.add("a.txt", "The mill grinds.")
    await Spool(mill.db, folder, limit=1 << 20).fetch(hash_of(b"The mill grinds."), 16)
    assert set(os.listdir(folder)) == named(["The mill grinds."])
