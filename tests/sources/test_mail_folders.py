"""Folders of mails: every mail once, threads whole, one bad file alone."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from farm import Farm, a_farm, a_mail
from worlds import EmlWorld, MaildirWorld

from gristmill.db import Database


@pytest.fixture
async def farm(db: Database, tmp_path: Path) -> AsyncIterator[Farm]:
    async with a_farm(db, tmp_path) as opened:
        yield opened


async def test_mails_of_a_folder_become_documents_once(farm: Farm, tmp_path: Path) -> None:
    box = tmp_path / "box"
    (box / "in").mkdir(parents=True)
    for n in range(5):
        (box / "in" / f"{n}.eml").write_bytes(a_mail(n))
    source = await farm.add("eml", path=str(box))
    await farm.work()
    assert await farm.states(source) == {f"in/{n}.eml": "INDEXED" for n in range(5)}
    assert await farm.documents() == {f"email::{n}@acme.test": 1 for n in range(5)}
    assert [item.title for item in await farm.items(source)] == [f"Subject {n}" for n in range(5)]
    await farm.poll(source)
    assert await farm.documents() == {f"email::{n}@acme.test": 1 for n in range(5)}
    looked = await farm.look(source)
    assert looked.succeeded_at is not None
    assert looked.error is None


async def test_the_links_of_a_mail_are_written_down_and_go_with_it(farm: Farm, tmp_path: Path) -> None:
    box = tmp_path / "box"
    box.mkdir()
    (box / "1.eml").write_bytes(a_mail(1, "See https://acme.test/plan and tell me."))
    source = await farm.add("eml", path=str(box))
    await farm.work()
    (found,) = await farm.rows("SELECT l.url, p.urn FROM link l JOIN link_place p ON p.link = l.id")
    assert (found.url, found.urn) == ("https://acme.test/plan", "email::1@acme.test")
    (box / "1.eml").unlink()
    await farm.compare(source)
    assert await farm.rows("SELECT 1 FROM link_place") == []


@pytest.mark.parametrize("kind", ["eml", "maildir"])
async def test_another_mail_under_a_known_message_id_in_a_folder_takes_nobodys_place(
    farm: Farm, tmp_path: Path, kind: str
) -> None:
    world = (EmlWorld if kind == "eml" else MaildirWorld)(tmp_path / "box")
    await world.put("one", "The true one.")
    source = await farm.add(kind, **world.options)
    await farm.work()
    (true,) = [item.document for item in await farm.items(source)]
    place = tmp_path / "box" / ("forged.eml" if kind == "eml" else "new/forged")
    place.write_bytes(a_mail("one", "The forged one."))
    await farm.poll(source)
    items = {item.urn: item.document for item in await farm.items(source)}
    assert items["email::one@acme.test"] == true
    assert len(items) == 2
    (marked,) = await farm.rows("SELECT meta ->> 'same_id_as' AS said FROM document WHERE meta ? 'same_id_as'")
    assert marked.said == "one@acme.test"


async def test_a_folder_that_is_no_maildir_fails_with_a_sentence_until_it_is_one(farm: Farm, tmp_path: Path) -> None:
    box = tmp_path / "box"
    box.mkdir()
    source = await farm.add("maildir", path=str(box))
    await farm.work()
    assert (await farm.look(source)).error is None  # the mail program may make it when the first mail comes
    (box / "1.eml").write_bytes(a_mail(1))
    await farm.poll(source)
    assert "is no Maildir: there is no folder with cur and new" in str((await farm.look(source)).error)
    await farm.compare(source)
    assert "is no Maildir" in str((await farm.look(source)).listing_error)
    for part in ("cur", "new", "tmp"):
        (box / ".Sent" / part).mkdir(parents=True)
    (box / ".Sent" / "cur" / "1").write_bytes(a_mail(1))
    await farm.poll(source)
    assert (await farm.look(source)).error is None
    assert await farm.documents() == {"email::1@acme.test": 1}


async def test_a_link_in_a_folder_is_called_a_link(farm: Farm, tmp_path: Path) -> None:
    box = tmp_path / "box"
    box.mkdir()
    (tmp_path / "elsewhere.eml").write_bytes(a_mail(1))
    (box / "link.eml").symlink_to(tmp_path / "elsewhere.eml")
    source = await farm.add("eml", path=str(box))
    await farm.work()
    (item,) = await farm.items(source)
    assert (item.state, item.error) == ("SET_ASIDE", "It is a link, and links are not followed.")
