"""Whose work goes first: a person's before a batch, and what is quickly done before what takes long."""

from pathlib import Path
from typing import Any

import pytest

from documents.files import pdf, saved, scan
from documents.grindstone import Mill, a_mill, alone
from gristmill.db import Database
from gristmill.documents.letters import (
    BuildGraph,
    EmbedChunk,
    FinishDocument,
    OpenDocument,
    ReadPage,
    SealPhase,
    SplitPage,
)
from gristmill.documents.urgency import BATCH, FEW, ORDINARY, SCAN, Urgency, of_arrival, of_unit
from gristmill.models import ModelPool
from gristmill.queue import on

NOTE = "# Plan\n\nAnna Berg of Nordwind GmbH signed the contract NW-2024-017 in Hamburg on 3 May 2024.\n"
AWAITED = Urgency(foreground=True)
PHASES = {letter.kind for letter in (ReadPage, SplitPage, EmbedChunk, BuildGraph)}
KINDS = PHASES | {letter.kind for letter in (OpenDocument, SealPhase, FinishDocument)}

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def mill(db: Database, models: ModelPool, tmp_path: Path) -> Mill:
    return a_mill(db, tmp_path, models)


async def read_in_order(mill: Mill) -> list[Any]:
    """The documents whose pages are read when all are opened, one page after the other."""
    good = mill.handlers.pop("ocr.read")
    await mill.grind()
    begun: list[Any] = []

    async def read(letter: ReadPage) -> Any:
        begun.append(letter.document)
        return await alone(good, letter)

    mill.handlers["ocr.read"] = on(ReadPage, read, at_once=1)
    await mill.grind()
    return begun


def picture(text: str) -> bytes:
    return saved(scan(text), "PNG")


async def test_a_note_is_read_before_the_scans_that_came_earlier(mill: Mill) -> None:
    paper = await mill.add("paper.pdf", pdf([scan("Hamburg"), scan("Bremen")]))
    photo = await mill.add("photo.png", picture("Nordwind"))
    note = await mill.add("note.md", NOTE)
    first, *between, last = await read_in_order(mill)
    assert (first, last) == (note.document, paper.document)
    assert set(between) == {photo.document, paper.document}  # whichever was opened first


async def test_a_document_with_a_picture_on_its_cover_is_no_scan(mill: Mill) -> None:
    photo = await mill.add("photo.png", picture("Nordwind"))
    pages = [scan("Hamburg"), NOTE * 2, NOTE * 2]
    report = await mill.add("report.pdf", pdf(pages))
    assert await read_in_order(mill) == [*[report.document] * len(pages), photo.document]


async def test_what_a_person_waits_for_goes_before_all_else_from_its_opening_to_its_end(mill: Mill) -> None:
    note = await mill.add("note.md", NOTE)
    photo = await mill.add("photo.png", picture("Nordwind"), urgency=AWAITED)
    mail = await mill.add("mail.eml", mail_with(["plan.md"]), urgency=AWAITED)
    assert mail.document is not None
    assert (await read_in_order(mill))[-1] == note.document
    (attached,) = [one.id for one in await mill.family(mail.document) if one.id != mail.document]
    awaited = {photo.document, mail.document, attached}
    assert await seen(mill, True) == {(one, kind) for one in awaited for kind in KINDS}
    assert await seen(mill, False) == {(note.document, kind) for kind in KINDS}


async def seen(mill: Mill, foreground: bool) -> set[tuple[int, str]]:
    rows = await mill.rows(
        "SELECT split_part(owner, ':', 2)::int AS document, kind FROM task"
        " WHERE foreground = %(foreground)s AND queue IS NOT NULL AND owner IS NOT NULL",
        foreground=foreground,
    )
    return {(row.document, row.kind) for row in rows}


async def test_of_many_parts_that_come_with_a_document_all_but_the_first_are_a_batch(mill: Mill) -> None:
    mail = await mill.add("mail.eml", mail_with([f"{n}.md" for n in range(FEW + 2)]), urgency=AWAITED)
    await mill.grind()
    rows = await mill.rows(
        "SELECT t.foreground, t.priority FROM document d JOIN task t ON t.id = d.opening WHERE d.container = %(mail)s"
        " ORDER BY d.id",
        mail=mail.document,
    )
    assert [Urgency(*row) for row in rows] == [AWAITED] * FEW + [BATCH] * 2


def mail_with(names: list[str]) -> str:
    parts = [
        f'--b\nContent-Type: text/markdown\nContent-Disposition: attachment; filename="{name}"\n\n# {name}\n'
        for name in names
    ]
    return (
        "From: Anna Berg <anna@example.com>\nSubject: The plan\nMIME-Version: 1.0\n"
        'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/plain\n\nDear Ben, see below.\n'
        f"{''.join(parts)}--b--\n"
    )


@pytest.mark.parametrize(
    ("place", "given", "urgency"),
    [(0, AWAITED, AWAITED), (FEW - 1, ORDINARY, ORDINARY), (FEW, AWAITED, BATCH), (FEW, ORDINARY, BATCH)],
)
async def test_the_first_few_that_come_together_are_no_batch(place: int, given: Urgency, urgency: Urgency) -> None:
    assert of_arrival(place, given) == urgency


@pytest.mark.parametrize(
    ("given", "work", "urgency"),
    [
        (ORDINARY, 1, ORDINARY),
        (ORDINARY, 10, ORDINARY),
        (ORDINARY, 11, Urgency(priority=-1)),
        (ORDINARY, SCAN, Urgency(priority=-1)),
        (AWAITED, 2 * SCAN, Urgency(foreground=True, priority=-2)),
        (AWAITED, 11 * SCAN, Urgency(priority=BATCH.priority - 3)),
        (BATCH, 1, BATCH),
        (BATCH, 1_001, Urgency(priority=BATCH.priority - 3)),
    ],
)
async def test_the_first_of_a_document_goes_before_the_rest_of_it(given: Urgency, work: int, urgency: Urgency) -> None:
    assert of_unit(given, work) == urgency
