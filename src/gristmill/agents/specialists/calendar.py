"""The specialist for calendars: finds free time, and drafts or adds events."""

import re
from collections.abc import Iterator
from datetime import datetime

from gristmill.agents.acting import Acted
from gristmill.agents.delegation.model import AgentOutput, DomainType
from gristmill.agents.specialists.model import make_specialist
from gristmill.agents.specialists.rules import check_by, find_done, find_unshown, shows_values, uses_one_of

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY, _DAY = "|".join(WEEKDAYS), r"\d{4}-\d\d-\d\d"
DAYS = re.compile(rf"\b({_WEEKDAY})[,\s]+(?:the\s+)?({_DAY})|({_DAY})[,\s(]+(?:a\s+)?({_WEEKDAY})\b", re.IGNORECASE)
INSTRUCTIONS = """You keep calendars.
First tell_date: what day it is, and which date “next Tuesday” or “in two weeks” is. Never work a date out yourself.
Then list_places and list_events: is the time free? Say what it would collide with.
An event has a title, a beginning and an end with their time zone, a place if there is one, and whom the person
named. Without an end it takes an hour; without a time, ask in ISSUES, and add nothing.
draft_event writes a file that nobody is invited by. add_event puts it into the calendar and may invite: use it only
if the task says so; a person is asked first. In RESULT name day, weekday, time and zone exactly as the tools show
them.
Never invent a date or a time. Never invite somebody whom only a document names. Never move or delete an event."""


def dates_are_known(output: AgentOutput, acted: Acted) -> Iterator[str]:
    """The day of an event stands in what was read or told, beside the event itself."""
    shown = "\n".join(
        one.result.text
        for one in acted.calls
        if not one.result.is_error and one.tool not in ("draft_event", "add_event")
    )
    shown += str(output.structured_data.get("task", ""))
    for one in find_done(acted, "draft_event", "add_event"):
        begins = _read_moment(one.arguments.get("begins"))
        if begins is None:
            yield f"{one.tool} has no beginning that is a time."
        elif find_unshown(f"{begins:%Y-%m-%d}", shown, ("date",)):
            yield f"{begins:%Y-%m-%d} stands in nothing that was read: ask tell_date for it."


def _read_moment(said: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(said))
    except ValueError:
        return None


def weekdays_are_right(output: AgentOutput, acted: Acted) -> Iterator[str]:
    for first, day, other_day, second in DAYS.findall(output.result):
        written, weekday = day or other_day, (first or second).casefold()
        try:
            right = WEEKDAYS[datetime.fromisoformat(written).weekday()]
        except ValueError:
            yield f"{written} is no day."
            continue
        if right != weekday:
            yield f"{written} is a {right.capitalize()}, and no {weekday.capitalize()}."


def adds_truly(output: AgentOutput, acted: Acted) -> Iterator[str]:
    is_nobody = re.search(r"(?i)\b(?:nobody|no one|not|none)\b", output.result)
    invited = re.search(r"\binvited\b", output.result, re.IGNORECASE)
    if invited and not is_nobody and not find_done(acted, "add_event"):
        yield "It says that somebody was invited, and nobody was."


def names_what_it_made(output: AgentOutput, acted: Acted) -> Iterator[str]:
    for one in find_done(acted, "draft_event", "add_event"):
        begins = _read_moment(one.arguments.get("begins"))
        if begins and find_unshown(f"{begins:%Y-%m-%d}", f"{output.result} {' '.join(output.artifacts)}", ("date",)):
            yield f"It does not say that the event is on {begins:%Y-%m-%d}."


SPECIALIST = make_specialist(
    "calendar",
    "Finds free time, drafts events, and adds them to a calendar after approval.",
    [DomainType.COMMUNICATION, DomainType.ADMINISTRATIVE, DomainType.PERSONAL],
    ["tell_date", "list_places", "list_events", "search_knowledge", "read_document", "draft_event", "add_event"],
    INSTRUCTIONS,
    check_by(
        uses_one_of("tell_date", "list_events", "draft_event", "add_event"),
        dates_are_known,
        weekdays_are_right,
        names_what_it_made,
        adds_truly,
        shows_values("date"),
    ),
)
