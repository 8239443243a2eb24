"""Events of calendars, as agents write them."""

from datetime import datetime
from typing import Any

from pydantic import Field, field_validator

from gristmill.agents.tools.mails import Recipient
from gristmill.agents.tools.model import Arguments


class EventArguments(Arguments):
    """An event."""

    title: str = Field(min_length=1, max_length=300, description="One line.")
    begins: datetime = Field(description="With its time zone: 2027-05-03T14:00:00+02:00.")
    ends: datetime = Field(description="With its time zone.")
    place: str = Field(default="", max_length=300, description="Where it is.")
    text: str = Field(default="", max_length=20_000, description="What it is about.")
    attendees: list[Recipient] = Field(
        default_factory=list[str], max_length=50, description="Mail addresses of those who come."
    )

    @field_validator("begins", "ends")
    @classmethod
    def check_zone(cls, moment: datetime) -> datetime:
        if moment.tzinfo is None:
            raise ValueError("it needs a time zone: write 2027-05-03T14:00:00+02:00")
        return moment

    @field_validator("ends")
    @classmethod
    def check_order(cls, ends: datetime, info: Any) -> datetime:
        if "begins" in info.data and ends <= info.data["begins"]:
            raise ValueError("it ends before it begins")
        return ends


def write_calendar(event: EventArguments, *, key: str, now: datetime) -> bytes:
    """A calendar with this one event; its UID is made of the key."""
    import icalendar  # noqa: PLC0415 it takes 25 ms, and few processes write calendars

    calendars: Any = icalendar  # its types are partly unknown
    calendar = calendars.Calendar()
    calendar.add("prodid", "-//gristmill//agents//EN")
    calendar.add("version", "2.0")
    entry = calendars.Event()
    entry.add("uid", f"{key}@gristmill")
    entry.add("dtstamp", now)
    entry.add("summary", event.title)
    entry.add("dtstart", event.begins)
    entry.add("dtend", event.ends)
    if event.place:
        entry.add("location", event.place)
    if event.text:
        entry.add("description", event.text)
    for address in event.attendees:
        entry.add("attendee", f"mailto:{address}")
    calendar.add_component(entry)
    return bytes(calendar.to_ical())


def describe(event: EventArguments) -> str:
    who = f" with {', '.join(event.attendees)}" if event.attendees else ""
    return f"“{event.title}” on {event.begins:%Y-%m-%d %H:%M}{who}."
