"""Copies of files on disk: opened once, kept while somebody reads them, gone with their documents."""

from pathlib import Path

import pytest
import pytest_asyncio

from documents.grindstone import Mill, a_mill
from gristmill.app import Bench
from gristmill.db import Database
from gristmill.documents.blobs import Spool, hashed
from gristmill.documents.reading import Limits, inspect, plain, read

pytestmark = pytest.mark.asyncio(loop_scope="session")

TABLE = "id,item,price\n" + "".join(f"{n},Flour of the sort {n},{n}.50\n" for n in range(2_000))


@pytest_asyncio.fixture(loop_scope="session")
async def mill(db: Database, tmp_path: Path, bench: Bench) -> Mill:
    return a_mill(db, tmp_path, bench)


async def test_a_file_is_opened_once_for_all_its_pages_however_often_it_is_asked_for(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    openings: list[str] = []
    monkeypatch.setattr(plain.tables, "_opened", lambda path: openings.append(path) or plain._table(path))
    await mill.add("stock.csv", TABLE)
    spool = Spool(mill.db, mill.folder / "spool", limit=1 << 20)
    path = await spool.file(hashed(TABLE.encode()), len(TABLE))
    pages = inspect(str(path), "stock.csv", Limits()).pages
    for number in range(1, pages + 1):
        path = await spool.file(hashed(TABLE.encode()), len(TABLE))
        assert read(str(path), "csv", number, Limits()).text
    assert (pages, len(openings)) == (5, 1)
