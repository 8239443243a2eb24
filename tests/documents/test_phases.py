"""Phases are data: a row and a handler are all that a new one needs."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import pytest_asyncio
from rich.console import Console

from documents.grindstone import Mill, a_mill
from gristmill.cli import document as shown_document
from gristmill.cli import documents as shown_list
from gristmill.cli.grinding import draw_board
from gristmill.db import Database
from gristmill.documents import (
    Progress,
    list_pages,
    list_phases,
    load_documents,
    load_progress,
    on_phase,
    retry,
    store_chunk,
)
from gristmill.documents.phases.definition import Phase
from gristmill.errors import Permanent, Refused
from gristmill.ids import DocumentId
from gristmill.models import FakeEmbedder, ModelPool
from gristmill.queue import Done, Skip, on

pytestmark = pytest.mark.asyncio(loop_scope="session")
NOTE = "# Plan\n\nAnna Berg of Nordwind GmbH signed the contract NW-2024-017 in Hamburg on 3 May 2024.\n"
TABLE = "id,item,price\n" + "".join(f"{n},Flour of the sort {n},{n}.50\n" for n in range(20))
ROW = """
INSERT INTO phase_kind (name, ordinal, label, unit, kind)
VALUES ('language', 50, 'languages', 'chunk', 'language.detect')
"""


@dataclass(frozen=True)
class DetectLanguage:
    """A fourth phase: say in which language a chunk is."""

    kind: ClassVar[str] = "language.detect"
    document: DocumentId
    page: int
    ordinal: int


@pytest_asyncio.fixture(loop_scope="session")
async def mill(db: Database, models: ModelPool, tmp_path: Path) -> Mill:
    """One whose documents go through a fourth phase."""
    async with db.transaction() as tx:
        await tx.execute(ROW)
    made = a_mill(db, tmp_path, models)
    made.handlers[DetectLanguage.kind] = on(DetectLanguage, detect, batch=8)
    return made


async def detect(letters: Sequence[DetectLanguage]) -> list[Done | Skip]:
    return [Done(result="en") if letter.ordinal == 0 else Skip("the first chunk says it") for letter in letters]


def printed(what: Any) -> str:
    console = Console(width=200, file=io.StringIO(), record=True)
    console.print(what)
    return console.export_text()


async def test_the_program_brings_three_phases_that_are_shown_and_one_that_is_not(db: Database) -> None:
    async with db.transaction() as tx:
        found = await list_phases(tx)
    assert found == [
        Phase("ocr", 10, "ocr", "page", "ocr.read", True),
        Phase("split", 20, "split", "page", "vector.split", False),
        Phase("vector", 30, "vector", "chunk", "vector.embed", True),
        Phase("graph", 40, "graph", "chunk", "graph.build", True),
    ]
    assert [phase.queue for phase in found] == ["ocr", "vector", "vector", "graph"]


async def test_a_row_and_a_handler_make_a_fourth_phase(mill: Mill) -> None:
    one = await mill.ground("note.md", NOTE)
    assert (one.status, one.summary) == ("completed", "1 page, 1 chunk")
    assert [(phase.name, phase.status, phase.done) for phase in one.phases] == [
        ("ocr", "skipped", 1),
        ("vector", "completed", 1),
        ("graph", "completed", 1),
        ("language", "completed", 1),
    ]
    sealed = await mill.rows("SELECT payload ->> 'phase' AS name FROM task WHERE kind = 'documents.seal' ORDER BY id")
    assert [row.name for row in sealed] == ["split", "vector", "graph", "language"]
    assert await mill.rows("SELECT result FROM task WHERE kind = 'language.detect'") == [("en",)]


async def test_units_that_a_phase_skips_go_on_to_the_next(mill: Mill) -> None:
    one = await mill.ground("stock.csv", TABLE)
    assert [phase.status for phase in one.phases][2:] == ["skipped", "completed"]


async def test_a_fourth_phase_is_seen_wherever_phases_are(mill: Mill) -> None:
    async def fail(letters: Sequence[DetectLanguage]) -> list[Exception]:
        return [Permanent("nobody speaks it") for _ in letters]

    mill.handlers[DetectLanguage.kind] = on(DetectLanguage, fail, batch=8)
    one = await mill.ground("note.md", NOTE)
    assert (one.status, one.phases[3].status, one.summary) == ("failed", "failed", "1 page, 0 of 1 chunk")
    async with mill.db.transaction() as tx:
        (page,) = await list_pages(tx, one.id)
        (document,) = (await load_documents(tx, [one.id])).values()
    assert [(phase.name, phase.status) for phase in page.phases][2:] == [("graph", "completed"), ("language", "failed")]
    assert page.phases[3].error == "nobody speaks it"
    seen = await shown_of(mill, one)
    for view in (seen, printed(draw_board([one], rows=9)), printed(shown_list.documents_view([one], ""))):
        assert "languages" in view
    assert [line for line in seen.splitlines() if "languages" in line and "failed" in line]
    assert "nobody speaks it" in seen

    mill.handlers[DetectLanguage.kind] = on(DetectLanguage, detect, batch=8)
    async with mill.db.transaction() as tx:
        assert (await retry(tx, document, "graph")).tasks == ()
        with pytest.raises(Refused, match="one of open, ocr, split, vector, graph, language"):
            await retry(tx, document, "opera")
        assert len((await retry(tx, document, "language")).tasks) == 1
    await mill.grind()
    assert (await mill.look(one.id)).status == "completed"


async def shown_of(mill: Mill, one: Progress) -> str:
    """As `document show` prints it."""
    async with mill.db.transaction() as tx:
        seen = await shown_document._load_seen(tx, one.id)  # pyright: ignore[reportPrivateUsage]
    return printed(shown_document._document_view(seen))  # pyright: ignore[reportPrivateUsage]


@dataclass(frozen=True)
class Straighten:
    """A phase before all others: turn a page the right way up."""

    kind: ClassVar[str] = "pages.straighten"
    document: DocumentId
    page: int


@dataclass(frozen=True)
class Weigh:
    """A phase in the middle: say how much a chunk matters."""

    kind: ClassVar[str] = "chunks.weigh"
    document: DocumentId
    page: int
    ordinal: int


async def straighten(letters: Sequence[Straighten]) -> list[Done | Skip]:
    return [Done(result="straight") for _ in letters]


async def weigh(letters: Sequence[Weigh]) -> list[Done | Skip]:
    return [Done(result=1) if letter.ordinal == 0 else Skip("it is light") for letter in letters]


async def test_a_phase_in_the_first_place_and_one_in_the_middle_need_a_row_and_a_handler(
    db: Database, models: ModelPool, tmp_path: Path
) -> None:
    async with db.transaction() as tx:
        await tx.execute(
            "INSERT INTO phase_kind (name, ordinal, label, unit, kind) VALUES"
            " ('straight', 5, 'straight', 'page', 'pages.straighten'),"
            " ('weight', 35, 'weight', 'chunk', 'chunks.weigh')"
        )
    mill = a_mill(db, tmp_path, models)
    mill.handlers[Straighten.kind] = on_phase(Straighten, straighten, db=db, batch=8)
    mill.handlers[Weigh.kind] = on_phase(Weigh, weigh, db=db, batch=8)
    one = await mill.ground("note.md", NOTE)
    assert one.status == "completed"
    assert [(phase.name, phase.status, phase.done) for phase in one.phases] == [
        ("straight", "completed", 1),
        ("ocr", "skipped", 1),
        ("vector", "completed", 1),
        ("weight", "completed", 1),
        ("graph", "completed", 1),
    ]


async def test_a_retry_of_one_phase_leaves_another_of_the_same_queue_alone(
    db: Database, models: ModelPool, tmp_path: Path
) -> None:
    async def fail(letters: Sequence[DetectLanguage]) -> list[Exception]:
        return [Permanent("nobody speaks it") for _ in letters]

    async with db.transaction() as tx:
        await tx.execute(
            "INSERT INTO phase_kind (name, ordinal, label, unit, kind)"
            " VALUES ('language', 50, 'language', 'chunk', 'graph.detect')"
        )
    mill = a_mill(db, tmp_path, models)
    mill.handlers[DetectBeside.kind] = on(DetectBeside, fail, batch=8)
    one = await mill.ground("note.md", NOTE)
    assert one.status == "failed"
    async with db.transaction() as tx:
        (document,) = (await load_documents(tx, [one.id])).values()
        assert (await retry(tx, document, "graph")).tasks == ()
        assert len((await retry(tx, document, "language")).tasks) == 1


@dataclass(frozen=True)
class DetectBeside(DetectLanguage):
    """The same, in the queue of the graph."""

    kind: ClassVar[str] = "graph.detect"


async def test_documents_that_are_older_than_a_phase_are_listed_beside_newer_ones(
    db: Database, models: ModelPool, tmp_path: Path
) -> None:
    mill = a_mill(db, tmp_path, models)
    old = await mill.ground("old.md", NOTE)
    await store_chunk(db, FakeEmbedder(), "wiki:7", "The mill belongs to Ann.", "wiki::7")
    async with db.transaction() as tx:
        await tx.execute(ROW)
    mill.handlers[DetectLanguage.kind] = on(DetectLanguage, detect, batch=8)
    new = await mill.ground("new.md", NOTE)
    async with db.transaction() as tx:
        found = await load_progress(tx, [DocumentId(n) for n in range(old.id, new.id + 1)])
    assert [[phase.status for phase in one.phases] for one in found] == [
        ["skipped", "completed", "completed"],
        ["skipped", "completed", "skipped", "skipped"],
        ["skipped", "completed", "completed", "completed"],
    ]
    assert printed(shown_list.documents_view(found, "")).count("·") == 1


async def test_the_views_of_the_requirements_say_the_same_as_the_rows_that_they_are_made_of(mill: Mill) -> None:
    one = await mill.ground("note.md", NOTE)
    (row,) = await mill.rows("SELECT * FROM document_status WHERE id = %(id)s", id=one.id)
    assert (row.ocr_status, row.vector_index_status, row.graphrag_index_status) == ("skipped", "completed", "completed")
    assert (row.total_pages, row.ocr_completed_pages, row.ocr_failed_pages) == (1, 1, 0)
    assert (row.total_chunks, row.vector_completed_chunks, row.graphrag_completed_chunks) == (1, 1, 1)
    assert row.ocr_started_at <= row.ocr_completed_at <= row.vector_completed_at <= row.graphrag_completed_at
    assert (row.ocr_error, row.vector_error, row.graphrag_error, row.current_worker_id) == (None, None, None, None)
    (chunk,) = await mill.rows("SELECT vector_status, graphrag_status, vector_retry_count FROM chunk_status")
    assert chunk == ("completed", "completed", 0)
