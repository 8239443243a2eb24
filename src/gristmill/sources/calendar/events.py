"""Events of a calendar, each written as a page."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import Any, cast

from gristmill.errors import Permanent
from gristmill.sources.model import Description, Fetched
from gristmill.wording import quote_reason

MOST_PEOPLE = 200  # attendees that are named
LONGEST_TEXT = 200_000  # characters of a description


def _parse(data: bytes) -> list[Any]:
    """The calendars of a file. The library has no types of its own, and raises whatever its parts raise."""
    from icalendar import Calendar  # noqa: PLC0415 it takes 25 ms, and few processes read calendars

    try:
        return cast(list[Any], Calendar.from_ical(data, multiple=True))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise Permanent(f"It is no calendar ({quote_reason(error)}).") from error


def _find_uid(event: Any) -> str:
    said = str(event.get("UID") or "").strip()
    return said if said and len(said) <= 300 else sha256(event.to_ical()).hexdigest()[:40]


def describe_event(item: Fetched) -> Description:
    """A page of an event, whether it came from a file or from a server."""
    events = [event for calendar in _parse(item.content) for event in calendar.walk("VEVENT")]
    if not events:
        raise Permanent("It has no event.")
    main = next((one for one in events if one.get("RECURRENCE-ID") is None), events[0])
    title = _text(main, "SUMMARY")[:300] or "Event"
    page = "\n\n".join(_write_event(one) for one in [main, *(one for one in events if one is not main)])
    return Description(
        urn=f"meeting::{_find_uid(main)}",
        type="meeting",
        name=f"{title}.md".replace("/", "-")[:200],
        text=_text(main, "DESCRIPTION")[:LONGEST_TEXT] + "\n" + _text(main, "LOCATION"),
        title=title,
        reading="markdown",
        content=page.encode(),
        written_at=_moment(main, "DTSTART"),
        updated_at=max(filter(None, map(_find_update, events)), default=None),
        metadata={"organizer": _person(main.get("ORGANIZER")), "attendees": list(_attendees(main))},
    )


def _write_event(event: Any) -> str:
    facts = {
        "When": _write_times(event),
        "Repeats": event["RRULE"].to_ical().decode() if event.get("RRULE") else "",
        "Where": _text(event, "LOCATION"),
        "Organizer": _person(event.get("ORGANIZER")),
        "Attendees": ", ".join(_attendees(event)),
        "Status": _text(event, "STATUS").lower(),
        "Changed in the series": str(event["RECURRENCE-ID"].dt) if event.get("RECURRENCE-ID") else "",
    }
    lines = [f"**{name}:** {value}  " for name, value in facts.items() if value]
    head = f"# {_text(event, 'SUMMARY') or 'Event'}"
    return "\n".join([head, "", *lines, "", _text(event, "DESCRIPTION")[:LONGEST_TEXT]]).strip()


def _write_times(event: Any) -> str:
    start, end = _read(event, "DTSTART"), _read(event, "DTEND")
    length = event.get("DURATION")
    if end is None and start is not None and isinstance(getattr(length, "dt", None), timedelta):
        end = start + length.dt
    said = [_format(one) for one in (start, end) if one is not None]
    return " – ".join(said)


def _read(event: Any, name: str) -> date | datetime | None:
    found = getattr(event.get(name), "dt", None)
    return found if isinstance(found, date) else None


def _format(when: date | datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M %Z}".strip() if isinstance(when, datetime) else f"{when:%Y-%m-%d}"


def _moment(event: Any, name: str) -> datetime | None:
    found = _read(event, name)
    if found is None:
        return None
    if not isinstance(found, datetime):
        return datetime(found.year, found.month, found.day, tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _find_update(event: Any) -> datetime | None:
    return _moment(event, "LAST-MODIFIED") or _moment(event, "DTSTAMP")


def _text(event: Any, name: str) -> str:
    return str(next(iter(_list(event.get(name))), "")).strip()


def _list(found: Any) -> list[Any]:
    """A field that stands several times is a list."""
    if found is None:
        return []
    return cast(list[Any], found) if isinstance(found, list) else [found]


def _person(address: Any) -> str:
    """`Anna <anna@acme.test>`, from an address with parameters."""
    if address is None:
        return ""
    mail = str(address).removeprefix("mailto:").removeprefix("MAILTO:").strip()
    name = str(getattr(address, "params", {}).get("CN", "")).strip()
    return f"{name} <{mail}>" if name and name != mail else mail


def _attendees(event: Any) -> Iterator[str]:
    for one in _list(event.get("ATTENDEE"))[:MOST_PEOPLE]:
        if said := _person(one):
            yield said
