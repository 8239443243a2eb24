"""Calendars: every event of a file or of a real CalDAV server, with its people, times and exceptions."""

from collections.abc import AsyncIterator
from pathlib import Path
from time import process_time

import orjson
import pytest
from calendar_server import Radicale
from farm import Farm, a_farm

from gristmill.db import Database
from gristmill.errors import Permanent
from gristmill.sources.calendar.caldav import CalDavOptions
from gristmill.sources.calendar.dividing import LARGEST_ZONES, divide_calendar
from gristmill.sources.calendar.events import describe_event
from gristmill.sources.kinds import KINDS
from gristmill.sources.model import Fetched

EVENT = """BEGIN:VEVENT
UID:{uid}
DTSTAMP:20260301T000000Z
DTSTART:20260302T100000Z
DTEND:20260302T110000Z
SUMMARY:{title}
LOCATION:Mill
ORGANIZER;CN=Anna:mailto:anna@acme.test
ATTENDEE;CN=Bob:mailto:bob@acme.test
DESCRIPTION:See https://acme.test/plan
END:VEVENT
"""


def a_calendar(*events: str) -> str:
    return "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//test//EN\n" + "".join(events) + "END:VCALENDAR\n"


@pytest.fixture
async def farm(db: Database, tmp_path: Path) -> AsyncIterator[Farm]:
    async with a_farm(db, tmp_path) as opened:
        yield opened


def test_an_event_is_a_page_with_its_people_and_times() -> None:
    text = a_calendar(EVENT.format(uid="1@acme.test", title="Planning")).encode()
    found = describe_event(Fetched("one", "1", {}, text))
    page = (found.content or b"").decode()
    assert found.urn == "meeting::1@acme.test"
    assert found.title == "Planning"
    assert "**When:** 2026-03-02 10:00 UTC – 2026-03-02 11:00 UTC" in page
    assert "**Organizer:** Anna <anna@acme.test>" in page
    assert "**Attendees:** Bob <bob@acme.test>" in page
    assert "https://acme.test/plan" in found.text


def test_the_exceptions_of_a_series_stay_with_it() -> None:
    series = EVENT.format(uid="s", title="Weekly").replace("SUMMARY", "RRULE:FREQ=WEEKLY\nSUMMARY")
    moved = EVENT.format(uid="s", title="Moved").replace("SUMMARY", "RECURRENCE-ID:20260309T100000Z\nSUMMARY")
    events = divide_calendar(a_calendar(moved, series, EVENT.format(uid="x", title="Other")).encode())
    assert set(events) == {"s", "x"}
    page = (describe_event(Fetched("one", "s", {}, events["s"])).content or b"").decode()
    assert page.startswith("# Weekly")
    assert "# Moved" in page
    assert "**Repeats:** FREQ=WEEKLY" in page


@pytest.mark.parametrize("data", [b"", b"garbage", b"BEGIN:VCALENDAR\r\nEND:VEVENT\r\n", b"\xff\xfe"])
def test_what_is_no_calendar_is_refused(data: bytes) -> None:
    with pytest.raises(Permanent):
        describe_event(Fetched("one", "1", {}, data))


@pytest.mark.parametrize("line", [b"\x01\xff\n\x80\r\n" * 50, b"x\xcb\xabjN\x14\xff" * 50, b"long" * 500])
def test_bytes_that_are_no_calendar_are_not_quoted_in_the_reason(line: bytes) -> None:
    with pytest.raises(Permanent) as refused:
        describe_event(Fetched("one", "1", {}, line))
    reason = str(refused.value)
    assert reason.startswith("It is no calendar (Content line could not be parsed into parts")
    assert len(reason) < 200
    assert reason.isprintable()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"garbage",
        b"BEGIN:VCALENDAR\r\nEND:VEVENT\r\n",
        b"BEGIN:VEVENT\r\nEND:VEVENT\r\n",
        b"BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\n",
        b"BEGIN:VCALENDAR\r\nBEGIN:VCALENDAR\r\nEND:VCALENDAR\r\nEND:VCALENDAR\r\n",
    ],
)
def test_what_is_no_calendar_is_not_divided(data: bytes) -> None:
    with pytest.raises(Permanent):
        divide_calendar(data)


def test_a_file_with_two_calendars_has_the_events_of_both() -> None:
    first, second = (a_calendar(EVENT.format(uid=n, title=f"Event {n}")) for n in (1, 2))
    whole = (first + second).encode()
    assert set(divide_calendar(whole)) == {"1", "2"}
    assert describe_event(Fetched("one", "x", {}, whole)).title == "Event 1"


def test_an_event_keeps_the_time_zone_that_it_names() -> None:
    zones = [
        f"BEGIN:VTIMEZONE\nTZID:{name}\nBEGIN:STANDARD\nDTSTART:19701025T030000\n"
        f"TZOFFSETFROM:+0500\nTZOFFSETTO:+0400\nEND:STANDARD\nEND:VTIMEZONE\n"
        for name in ("Mill/Here", "Mill/There")
    ]
    event = EVENT.format(uid="z", title="Zoned").replace(
        "DTSTART:20260302T100000Z", "DTSTART;TZID=Mill/Here:20260302T100000"
    )
    (divided,) = divide_calendar(a_calendar(*zones, event).encode()).values()
    assert b"TZID:Mill/Here" in divided
    assert b"TZID:Mill/There" not in divided
    found = describe_event(Fetched("one", "z", {}, divided))
    assert found.written_at is not None
    assert found.written_at.isoformat() == "2026-03-02T10:00:00+04:00"


def test_time_zones_do_not_multiply_a_file() -> None:
    zone = "BEGIN:VTIMEZONE\nTZID:Z\n" + f"X-A:{'a' * 60}\n" * (LARGEST_ZONES // 60) + "END:VTIMEZONE\n"
    events = [EVENT.format(uid=n, title="x").replace("DTSTART:", "DTSTART;TZID=Z:") for n in range(50)]
    whole = a_calendar(zone, *events).encode()
    assert sum(map(len, divide_calendar(whole).values())) < len(whole)


def test_a_uid_that_goes_on_in_the_next_line_is_read_whole() -> None:
    event = EVENT.format(uid="first-\n half\n \n  and rest", title="Folded")
    assert set(divide_calendar(a_calendar(event).encode())) == {"first-half and rest"}


def test_no_file_keeps_a_worker_busy() -> None:
    """Nested events take the library a time that grows with the square of their number; dividing does not look."""
    nested = "BEGIN:VEVENT\nUID:n\n" * 20_000 + "END:VEVENT\n" * 20_000
    many = "".join(EVENT.format(uid=n, title=f"Event {n}") for n in range(3_000))
    started = process_time()
    assert len(divide_calendar(a_calendar(nested).encode())) == 1
    assert len(divide_calendar(a_calendar(many).encode())) == 3_000
    assert process_time() - started < 3  # 0.1 s; the library took minutes


async def test_the_checkpoint_of_many_files_stays_small(farm: Farm, tmp_path: Path) -> None:
    folder = tmp_path / "calendars"
    folder.mkdir()
    for n in range(1_500):
        (folder / f"calendar-of-somebody-{n}.ics").write_text(a_calendar(EVENT.format(uid=n, title=f"Event {n}")))
    source = await farm.add("ics", path=str(folder))
    hands = farm.by_hand(KINDS)
    await hands.poll(source)
    looked = await farm.look(source)
    assert len(orjson.dumps(looked.checkpoint)) < 10_000
    assert looked.step < 300
    (folder / "calendar-of-somebody-7.ics").write_text(a_calendar(EVENT.format(uid=7, title="Changed")))
    await hands.poll(source)
    assert sorted(item.version for item in await farm.items(source)) == [1] * 1_499 + [2]


async def test_a_file_of_many_events_is_many_items_and_only_the_changed_one_is_new(farm: Farm, tmp_path: Path) -> None:
    folder = tmp_path / "calendars"
    folder.mkdir()
    events = {n: EVENT.format(uid=n, title=f"Event {n}") for n in range(5)}
    (folder / "a.ics").write_text(a_calendar(*events.values()))
    source = await farm.add("ics", path=str(folder))
    await farm.work()
    assert await farm.documents() == {f"meeting::{n}": 1 for n in range(5)}
    events[3] = EVENT.format(uid=3, title="Changed")
    del events[0]
    (folder / "a.ics").write_text(a_calendar(*events.values()))
    await farm.poll(source)
    await farm.compare(source)
    assert await farm.documents() == {"meeting::1": 1, "meeting::2": 1, "meeting::3": 2, "meeting::4": 1}


# --- a real server


async def test_a_calendar_at_a_server_is_followed_by_its_etags(
    farm: Farm, radicale: Radicale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALENDAR_PASSWORD", "milling")
    url = radicale.make("work")
    for n in range(3):
        radicale.call("PUT", "work", f"{n}.ics", a_calendar(EVENT.format(uid=n, title=f"Event {n}")))
    source = await farm.add("caldav", url=url, user="anna", password="env:CALENDAR_PASSWORD")
    await farm.work()
    assert (await farm.look(source)).error is None
    assert await farm.documents() == {f"meeting::{n}": 1 for n in range(3)}
    before = await farm.items(source)
    await farm.poll(source)
    assert await farm.items(source) == before
    radicale.call("PUT", "work", "1.ics", a_calendar(EVENT.format(uid=1, title="Changed")))
    radicale.call("DELETE", "work", "0.ics")
    await farm.poll(source)
    await farm.compare(source)
    assert await farm.documents() == {"meeting::1": 2, "meeting::2": 1}


async def test_a_wrong_password_is_told_without_it(
    farm: Farm, radicale: Radicale, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALENDAR_PASSWORD", "wrong-secret")
    source = await farm.add("caldav", url=radicale.place("first"), user="anna", password="env:CALENDAR_PASSWORD")
    await farm.work()
    error = str((await farm.look(source)).error)
    assert "refuses us (401)" in error
    assert "wrong-secret" not in error


def test_a_password_is_not_sent_over_an_open_line() -> None:
    wish = {"user": "anna", "password": "env:X"}
    with pytest.raises(ValueError, match="in clear"):
        CalDavOptions.model_validate({**wish, "url": "http://cal.example.org/anna/"})
    for url in ("https://cal.example.org/anna/", "http://127.0.0.1:5232/anna/"):
        assert CalDavOptions.model_validate({**wish, "url": url}).url == url
