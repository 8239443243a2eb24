"""What becomes of the parts of a container when it changes: what is the same in it stays."""

from pathlib import Path
from typing import Any

import pytest

from documents.files import attached, pack_zeros
from documents.grindstone import Mill, a_mill
from gristmill.db import Database
from gristmill.documents import Progress, add_again, list_failures, remove
from gristmill.documents.letters import FinishDocument
from gristmill.errors import Refused
from gristmill.models import ModelPool
from gristmill.queue import Snooze, on

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def mill(db: Database, models: ModelPool, tmp_path: Path) -> Mill:
    return a_mill(db, tmp_path, models)


def mailbox(*names: str) -> str:
    return "".join(
        f"From a@example.com Tue Mar  3 10:00:{n:02} 2026\nFrom: a@example.com\nTo: b@example.com\nSubject: {n}\n\n"
        f"{name} signed the contract NW-2024-{n:03} in Hamburg.\n\n"
        for n, name in enumerate(names)
    )


async def parts(mill: Mill, box: Progress) -> list[Any]:
    return await mill.rows(
        "SELECT id, name, version FROM document WHERE container = %(id)s ORDER BY urn, version", id=box.id
    )


async def test_only_what_is_new_or_has_changed_in_a_mailbox_is_ground(mill: Mill) -> None:
    old = await mill.ground("box.mbox", mailbox("Anna Berg", "Bo Olsen", "Carla Diaz"))
    first, _, last = await parts(mill, old)
    box = await mill.ground("box.mbox", mailbox("Anna Berg", "Dora Falk", "Carla Diaz", "Emil Gran"))
    found = await parts(mill, box)
    assert [row[1:] for row in found] == [
        ("message-1.eml", 1),
        ("message-2.eml", 2),
        ("message-3.eml", 1),
        ("message-4.eml", 1),
    ]
    assert (found[0], found[2]) == (first, last)
    assert len(await mill.rows("SELECT FROM document")) == 5
    assert not await mill.rows("SELECT FROM kept_part")
    assert {one.status for one in await mill.family(box.id)} == {"completed"}
    async with mill.db.transaction() as tx:
        assert (await remove(tx, [box.id])).documents == 5


async def test_a_mailbox_made_anew_has_all_of_its_mails_made_anew(mill: Mill) -> None:
    box = await mill.ground("box.mbox", mailbox("Anna Berg", "Bo Olsen"))
    async with mill.db.transaction() as tx:
        new = await add_again(tx, box.id)
    await mill.grind()
    assert [row.version for row in await parts(mill, await mill.look(new))] == [2, 2]


async def test_a_mail_that_went_with_the_old_mailbox_before_the_new_one_was_whole_is_ground_again(mill: Mill) -> None:
    old = await mill.ground("box.mbox", mailbox("Anna Berg", "Bo Olsen"))
    good = mill.handlers["documents.finish"]

    async def finish(letter: FinishDocument) -> Any:
        """The old one is removed when the new one has been opened."""
        async with mill.db.transaction() as tx:
            if await tx.value("SELECT EXISTS (SELECT FROM document WHERE id = %(id)s)", id=old.id):
                await remove(tx, [old.id])
        return await good.run(letter)

    mill.handlers["documents.finish"] = on(FinishDocument, finish)
    await mill.add("box.mbox", mailbox("Anna Berg", "Bo Olsen", "Carla Diaz"))
    await mill.grind()
    (box,) = await mill.rows("SELECT id, version FROM document WHERE container IS NULL")
    assert box.version == 3
    assert [row.name for row in await parts(mill, await mill.look(box.id))] == [
        "message-1.eml",
        "message-2.eml",
        "message-3.eml",
    ]
    assert {one.status for one in await mill.family(box.id)} == {"completed"}


async def test_a_new_mailbox_that_is_removed_before_it_is_whole_takes_nothing_of_the_old_one(mill: Mill) -> None:
    old = await mill.ground("box.mbox", mailbox("Anna Berg", "Bo Olsen"))

    async def finish(letter: FinishDocument) -> Snooze:
        async with mill.db.transaction() as tx:
            await remove(tx, [letter.document])
        raise AssertionError("removed")

    mill.handlers["documents.finish"] = on(FinishDocument, finish)
    await mill.add("box.mbox", mailbox("Anna Berg", "Bo Olsen", "Carla Diaz"))
    await mill.grind()
    assert [row.version for row in await parts(mill, old)] == [1, 1]
    assert len(await mill.rows("SELECT FROM document")) == 3


PLAN = b"# Plan\n\nAnna Berg signed the contract NW-2024-017 in Hamburg.\n"


async def told(mill: Mill, pdf: Progress) -> dict[str, tuple[str, list[str]]]:
    """Each part with how it ended, and what of."""
    async with mill.db.transaction() as tx:
        return {
            one.name: (one.status, [failure.error for failure in await list_failures(tx, one.id)])
            for one in await mill.family(pdf.id)
            if one.id != pdf.id
        }


async def test_an_attachment_that_is_too_large_keeps_neither_the_pages_nor_the_others_back(
    db: Database, models: ModelPool, tmp_path: Path
) -> None:
    mill = a_mill(db, tmp_path, models, max_bytes=2 << 20)
    whole = attached([("log.txt", bytes(3 << 20)), ("plan.md", PLAN), ("torn.md", PLAN)])
    third = b"/EF<</F 8 0 R>>"
    pdf = await mill.ground("a.pdf", whole.replace(third, b" " * len(third)))
    assert (pdf.status, pdf.summary) == ("completed", "1 page without text")
    assert await told(mill, pdf) == {
        "log.txt": (
            "failed",
            ["The file has 3,145,728 bytes, and at most 2,097,152 are read (setting documents.max_bytes)."],
        ),
        "plan.md": ("completed", []),
        "torn.md": ("failed", ["The attachment is empty, or too damaged to be unpacked."]),
    }
    (big,) = await mill.rows("SELECT id FROM document WHERE name = 'log.txt'")
    with pytest.raises(Refused, match=f"reindex document {pdf.id}, in which it lies"):
        async with mill.db.transaction() as tx:
            await add_again(tx, big.id)


async def test_an_attachment_whose_name_is_half_a_character_has_none_and_is_read(mill: Mill) -> None:
    name, halved = b"(plan.md)", b"<FEFFD8002E>"
    pdf = await mill.ground("a.pdf", attached([("plan.md", PLAN)]).replace(name, halved))
    assert pdf.status == "completed"
    assert await told(mill, pdf) == {"attachment 1": ("completed", [])}


async def test_an_attachment_that_ends_its_reader_keeps_neither_the_pages_nor_the_others_back(
    db: Database, models: ModelPool, tmp_path: Path
) -> None:
    mill = a_mill(db, tmp_path, models, memory=512 << 20)
    files = [("plan.md", PLAN), ("log.txt", pack_zeros(700)), ("plan-b.md", PLAN)]
    pdf = await mill.ground("a.pdf", attached(files))
    assert (pdf.status, pdf.summary) == ("completed", "1 page without text")
    cannot = "The attachment cannot be unpacked within 2 minutes and 512 MB of memory: it is too large, or damaged."
    assert await told(mill, pdf) == {
        "plan.md": ("completed", []),
        "log.txt": ("failed", [cannot]),
        "plan-b.md": ("completed", []),
    }


async def test_what_attachments_unpack_to_is_limited_over_all_portions(
    db: Database, models: ModelPool, tmp_path: Path
) -> None:
    mill = a_mill(db, tmp_path, models, max_unpacked=40 << 20)
    log = b"The mill grinds.\n" * (1 << 20)
    pdf = await mill.ground("a.pdf", attached([(f"{n}.bin", b"%PDF-" + log) for n in range(3)]))
    setting = "(setting documents.max_unpacked)"
    over = f"Unpacked, the PDF with this attachment is larger than the 40 MB that are read {setting}."
    assert [errors == [over] for _, errors in (await told(mill, pdf)).values()] == [False, False, True]
