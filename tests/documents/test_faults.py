"""What a page can do to the child that reads it, and what that costs: attempts of this page, and nothing else."""

import asyncio
import os
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from documents.grindstone import Mill, a_mill, a_model_pool
from documents.misreading import misread
from gristmill.db import Database
from gristmill.documents import Progress, list_failures, load_documents, parsers, retry
from gristmill.documents.blobs import hash_of
from gristmill.documents.letters import BuildGraph, FinishDocument
from gristmill.documents.phases.graph import build_graph
from gristmill.documents.spool import Spool
from gristmill.errors import Permanent
from gristmill.models import Extraction, ModelPool, TextPassage
from gristmill.queue import on, set_queue

GOOD = [f"# Note {n}\n\nAnna Berg of Nordwind GmbH signed the contract NW-2024-01{n} in Hamburg.\n" for n in range(3)]
BAD = "# Bad\n\nBen Holt of Harbour Mills Inc reviewed the invoice INV-2024-007 in Lisbon.\n"


pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def mill(db: Database, models: ModelPool, tmp_path: Path) -> Mill:
    """One that tries a page twice, the second time soon, and gives it 512 MB."""
    async with db.transaction() as tx:
        await set_queue(tx, "ocr", retry_base="50ms", max_attempts=2)
    return a_mill(db, tmp_path, models, memory=512 << 20)


async def misground(mill: Mill, how: str, patch: pytest.MonkeyPatch) -> tuple[Progress, list[Progress]]:
    """The bad document and the good ones, all ground by one worker that lives to the end."""
    patch.setattr(parsers, "read_pages", partial(misread, how, str(mill.folder / "mark")))
    names = ["0.md", "bad.md", "1.md", "2.md"]  # in the middle, so that some are read before it
    added = [await mill.add(name, text) for name, text in zip(names, [GOOD[0], BAD, *GOOD[1:]], strict=True)]
    await mill.open()  # or some pages would be read before the bad one is in line
    await mill.grind()
    first, bad, *rest = await mill.looks([one.document for one in added if one.document is not None])
    return bad, [first, *rest]


async def begun(mill: Mill) -> dict[str, int]:
    """How often each page was begun."""
    rows = await mill.rows(
        "SELECT d.name, t.attempts FROM tasks t JOIN document d ON t.owner = 'document:' || d.id"
        " WHERE t.kind = 'ocr.read'"
    )
    return {row.name: row.attempts for row in rows}


async def test_pages_whose_reader_died_once_are_read_again_at_no_cost(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which of them it was at is not known until it dies again."""
    bad, good = await misground(mill, "dies once", monkeypatch)
    assert {one.status for one in (bad, *good)} == {"completed"}
    assert set((await begun(mill)).values()) == {1}


async def test_a_page_that_kills_its_reader_again_costs_one_attempt_of_itself_and_of_no_other(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = await misground(mill, "dies twice", monkeypatch)
    assert {one.status for one in (bad, *good)} == {"completed"}
    assert await begun(mill) == {"bad.md": 2, "0.md": 1, "1.md": 1, "2.md": 1}


async def test_a_page_that_eats_memory_is_buried_with_a_sentence_and_the_others_go_on(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = await misground(mill, "eats memory", monkeypatch)
    sentence = (
        "Page 1 needs more than 512 MB of memory to read: it may be damaged, or documents.memory is too little for it."
    )
    await buried(mill, bad, sentence, attempts=2)
    assert {one.status for one in good} == {"completed"}
    assert await begun(mill) == {"bad.md": 2, "0.md": 1, "1.md": 1, "2.md": 1}


async def test_a_page_that_hangs_is_buried_with_a_sentence_and_the_others_go_on(
    db: Database, models: ModelPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mill = a_mill(db, tmp_path, models, timeout="10s")
    async with db.transaction() as tx:
        await set_queue(tx, "ocr", max_attempts=1)
    bad, good = await misground(mill, "hangs", monkeypatch)
    sentence = (
        "Page 1 took longer than 10 seconds to read: it may be damaged, or documents.timeout is too short for it."
    )
    await buried(mill, bad, sentence, attempts=1)
    assert {one.status for one in good} == {"completed"}
    assert set((await begun(mill)).values()) == {1}


async def buried(mill: Mill, document: Progress, sentence: str, *, attempts: int) -> None:
    assert (document.status, document.summary) == ("failed", "0 of 1 page")
    async with mill.db.transaction() as tx:
        (dead,) = await list_failures(tx, document.id)
    assert (dead.page, dead.error, dead.attempts) == (1, sentence, attempts)


async def test_a_child_that_is_killed_from_outside_is_replaced_and_its_page_read_again(
    db: Database, tmp_path: Path
) -> None:
    """As the system does it when memory runs out; whoever it hits, each page is read in the end."""
    others = set(psutil.Process().children())
    async with a_model_pool() as models:
        mill = a_mill(db, tmp_path, models)
        added = [await mill.add(f"{n}.md", text) for n, text in enumerate([*GOOD, BAD])]
        grinding = asyncio.create_task(mill.grind())
        while not (children := set(psutil.Process().children()) - others):  # noqa: ASYNC110 nobody announces it
            await asyncio.sleep(0.01)
        children.pop().kill()
        await grinding
        found = await mill.looks([one.document for one in added if one.document is not None])
        assert {one.status for one in found} == {"completed"}


async def test_copies_of_files_keep_to_their_room_while_others_come_and_go(mill: Mill) -> None:
    texts = [f"{n} {text}" * 40 for n in range(20) for text in GOOD]
    for n, text in enumerate(texts):
        await mill.add(f"{n}.txt", text)
    folder = mill.folder / "small"
    folder.mkdir()
    (folder / "gone").symlink_to("nowhere")  # as if another worker had removed it while we look

    async def fetch(spool: Spool) -> None:
        for text in texts:
            path = await spool.fetch(hash_of(text.encode()), len(text.encode()))
            assert path.name == hash_of(text.encode()).hex()

    await asyncio.gather(*(fetch(Spool(mill.db, folder, limit=20_000)) for _ in range(4)))
    assert sum(path.lstat().st_size for path in folder.iterdir()) <= 40_000


async def test_a_copy_that_another_worker_still_writes_is_left_and_an_abandoned_one_goes(mill: Mill) -> None:
    text = GOOD[0].encode()
    await mill.add("a.md", text.decode())
    folder = mill.folder / "small"
    folder.mkdir()
    fresh, abandoned = folder / "coming-fresh", folder / "coming-abandoned"
    fresh.write_bytes(bytes(30_000))
    abandoned.write_bytes(bytes(30_000))
    os.utime(abandoned, (0, 0))
    await Spool(mill.db, folder, limit=20_000).fetch(hash_of(text), len(text))
    assert fresh.exists()
    assert not abandoned.exists()


async def test_slow_pages_are_taken_a_few_at_a_time_so_that_nobody_waits_behind_them(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsers, "read_pages", partial(misread, "is slow", str(mill.folder / "mark")))
    paths = [mill.file(f"{n}.md", BAD) for n in range(6)]
    wanted = [parsers.PageToRead(str(path), "markdown", 1) for path in paths]
    here = parsers.Parsers(mill.models.reading_processes, mill.models.embedding_processes, mill.settings.documents, 254)
    found = {place: page async for place, page in here.read(wanted)}
    assert len(found) == 6
    assert [place for place, page in found.items() if page is not None] == [0, 1], (
        "one reader: one tried, one more read"
    )
    added = [await mill.add(f"{n}.md", BAD + str(n)) for n in range(6)]
    await mill.grind()
    ends = await mill.looks([one.document for one in added if one.document is not None])
    assert {one.status for one in ends} == {"completed"}, "those put off are read in the end"
    assert set((await begun(mill)).values()) == {1}, "and waiting costs no attempt"


async def test_a_copy_that_lost_its_end_is_fetched_anew(mill: Mill) -> None:
    text = GOOD[0].encode()
    await mill.add("a.md", text.decode())
    spool = Spool(mill.db, mill.folder / "small", limit=20_000)
    copy = await spool.fetch(hash_of(text), len(text))
    copy.write_bytes(text[:10])  # as a machine leaves it that loses its power
    assert (await spool.fetch(hash_of(text), len(text))).read_bytes() == text


async def test_a_document_whose_end_died_says_so_and_can_be_tried_again(mill: Mill) -> None:
    good = mill.handlers["documents.finish"]

    async def finish(letter: FinishDocument) -> None:
        raise Permanent("The end of it is broken.")

    mill.handlers["documents.finish"] = on(FinishDocument, finish)
    one = await mill.ground("note.md", GOOD[0])
    assert one.status == "failed"
    mill.handlers["documents.finish"] = good
    async with mill.db.transaction() as tx:
        (document,) = (await load_documents(tx, [one.id])).values()
        assert (await retry(tx, document, "ocr")).tasks == ()
        assert len((await retry(tx, document)).tasks) == 1
    await mill.grind()
    assert (await mill.look(one.id)).status == "completed"


async def test_a_chunk_of_which_nothing_is_drawn_keeps_nobody_else_from_the_graph(mill: Mill) -> None:
    asked: list[int] = []

    class Moody:
        """Likes no bad notes."""

        version, batch, waits = "moody", 4, timedelta(0)

        async def extract(self, passages: Sequence[TextPassage]) -> Sequence[Extraction | Exception]:
            asked.append(len(passages))
            return [Permanent("It is bad.") if "Lisbon" in one.text else Extraction() for one in passages]

    mill.handlers["graph.build"] = on(BuildGraph, partial(build_graph, db=mill.db, extractor=Moody()), batch=4)
    added = [await mill.add(f"{n}.md", text) for n, text in enumerate([*GOOD, BAD])]
    await mill.grind()
    found = await mill.looks([one.document for one in added if one.document is not None])
    assert [one.status for one in found] == ["completed"] * 3 + ["failed"]
    assert sum(asked) == 4, "nobody is asked about again"
