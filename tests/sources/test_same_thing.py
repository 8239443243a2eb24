"""One thing that several sources have: one document, which follows whoever has the newest version."""

from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
from farm import Farm, a_farm, a_mail

from gristmill.db import Database
from gristmill.sources.model import RawItem, Source
from gristmill.sources.store import keep_items

TEXTS = """
SELECT d.urn, d.version, convert_from(string_agg(p.bytes, '' ORDER BY p.n), 'utf8') AS text
  FROM document d JOIN blob b ON b.hash = d.hash JOIN blob_piece p ON p.blob = b.id
 WHERE d.version = (SELECT max(version) FROM document l WHERE l.urn = d.urn) GROUP BY d.urn, d.version ORDER BY d.urn
"""


@pytest.fixture
async def farm(db: Database, tmp_path: Path) -> AsyncIterator[Farm]:
    async with a_farm(db, tmp_path) as opened:
        yield opened


def write_event(place: Path, summary: str, stamp: str = "") -> None:
    place.parent.mkdir(exist_ok=True)
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "BEGIN:VEVENT", "UID:u1", "DTSTART:20260101T100000Z"]
    lines += [f"LAST-MODIFIED:{stamp}"] * bool(stamp)
    lines += [f"SUMMARY:{summary}", "END:VEVENT", "END:VCALENDAR", ""]
    place.write_bytes("\r\n".join(lines).encode())


def an_issue(text: str, updated: str = "") -> RawItem:
    said = {"title": "T", "body": text, "number": 1, "updated_at": updated}
    return RawItem("a/b#1", orjson.dumps({"issue": said, "timeline": [], "pull": {}, "comments": []}), text)


async def keep(farm: Farm, source: Source, item: RawItem) -> None:
    async with farm.db.transaction() as tx:
        await keep_items(tx, source, [item])
    await farm.work()


async def two_trackers(farm: Farm) -> tuple[Source, Source]:
    """Both have the issues of one repository; nobody polls them."""
    url = "http://127.0.0.1:9"
    first, second = [await farm.add("github", name=name, url=url, repositories="a/b") for name in ("one", "two")]
    await farm.work()
    return first, second


async def shown(farm: Farm) -> dict[str, str]:
    """The newest text of each document."""
    return {row.urn: row.text for row in await farm.rows(TEXTS)}


async def check_documents(farm: Farm, *sources: Source) -> None:
    """Every item leads to the newest version of its document."""
    newest = await farm.rows("SELECT max(id) AS id FROM document GROUP BY urn")
    documents = {item.document for source in sources for item in await farm.items(source) if item.state == "INDEXED"}
    assert documents == {row.id for row in newest}


async def test_an_event_of_two_calendars_follows_its_changes(farm: Farm, tmp_path: Path) -> None:
    places = [tmp_path / name / "c.ics" for name in "ab"]
    for place in places:
        write_event(place, "room ONE")
    sources = [await farm.add("ics", name=place.parent.name, path=str(place.parent)) for place in places]
    await farm.work()
    for place in places:
        write_event(place, "room TWO, moved")
    for source in sources:
        await farm.poll(source)
    (text,) = (await shown(farm)).values()
    assert "room TWO, moved" in text
    await check_documents(farm, *sources)


async def test_the_newer_version_of_an_event_is_shown_whichever_calendar_is_read_last(
    farm: Farm, tmp_path: Path
) -> None:
    new, old = tmp_path / "a" / "c.ics", tmp_path / "b" / "c.ics"
    write_event(new, "the old time", "20260101T000000Z")
    write_event(old, "the old time", "20260101T000000Z")
    sources = [await farm.add("ics", name=place.parent.name, path=str(place.parent)) for place in (new, old)]
    await farm.work()
    write_event(new, "the new time", "20260301T000000Z")
    await farm.poll(sources[0])
    write_event(old, "a late answer", "20260201T000000Z")
    await farm.poll(sources[1])
    (text,) = (await shown(farm)).values()
    assert "the new time" in text
    await check_documents(farm, *sources)


async def test_an_issue_of_two_sources_stays_one_document_when_it_changes(farm: Farm) -> None:
    first, second = await two_trackers(farm)
    for text in ("v1", "v2", "v3"):
        for source in (first, second):
            await keep(farm, source, an_issue(text))
    texts = await shown(farm)
    assert list(texts) == ["github::a/b#1"]
    assert "v3" in texts["github::a/b#1"]
    await check_documents(farm, first, second)


async def test_an_older_version_that_comes_later_does_not_take_the_place_of_a_newer_one(farm: Farm) -> None:
    first, second = await two_trackers(farm)
    await keep(farm, first, an_issue("the newer text", "2026-03-02T10:00:00Z"))
    await keep(farm, second, an_issue("the older text", "2026-03-01T10:00:00Z"))
    assert "the newer text" in (await shown(farm))["github::a/b#1"]
    await keep(farm, second, an_issue("the newest text", "2026-03-03T10:00:00Z"))
    assert "the newest text" in (await shown(farm))["github::a/b#1"]
    await check_documents(farm, first, second)


async def test_a_time_in_the_future_holds_nobody_back(farm: Farm) -> None:
    first, second = await two_trackers(farm)
    await keep(farm, first, an_issue("a clock that is wrong", "2131-01-01T00:00:00Z"))
    await keep(farm, second, an_issue("the newer text", "2026-03-03T10:00:00Z"))
    assert "the newer text" in (await shown(farm))["github::a/b#1"]


async def test_a_document_of_two_sources_stays_until_both_are_gone(farm: Farm, tmp_path: Path) -> None:
    places = [tmp_path / name / "c.ics" for name in "ab"]
    for place in places:
        write_event(place, "room ONE")
    sources = [await farm.add("ics", name=place.parent.name, path=str(place.parent)) for place in places]
    await farm.work()
    write_event(places[0], "room TWO")
    await farm.poll(sources[0])
    places[0].unlink()
    await farm.compare(sources[0])
    assert "room TWO" in (await shown(farm))["meeting::u1"]
    places[1].unlink()
    await farm.compare(sources[1])
    assert await shown(farm) == {}


async def test_two_mails_with_one_id_are_still_two(farm: Farm, tmp_path: Path) -> None:
    for name, text in (("a", "Pay Anna."), ("b", "Pay Mallory.")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.eml").write_bytes(a_mail(1, text))
        await farm.add("eml", name=name, path=str(tmp_path / name))
        await farm.work()
    assert len(await farm.documents()) == 2
