"""The tool that lists events of a calendar, as it was polled last."""

import re
from contextlib import suppress
from datetime import date

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.tools.places import find_place
from gristmill.documents import load_pages
from gristmill.errors import Refused
from gristmill.sources import list_items

CALENDARS = ("caldav", "ics")
MOST_LOOKED_THROUGH = 1_000
WHEN = re.compile(r"^\*\*When:\*\* (.{1,500})", re.MULTILINE)
DAY = re.compile(r"\d{4}-\d\d-\d\d")


class ListEvents(Arguments):
    """Of which calendar, and between which days."""

    calendar: str = Field(max_length=100, description="The name of the source that is the calendar.")
    first_day: date = Field(description="The first day: 2027-05-03.")
    last_day: date = Field(description="The last day.")


async def list_events(arguments: ListEvents, context: ToolContext) -> ToolResult:
    if arguments.last_day < arguments.first_day:
        raise Refused("The last day is before the first one.")
    source = await find_place(context, arguments.calendar, CALENDARS)
    lines: list[str] = []
    async with context.db.reading(seen_from=context.place) as tx:
        for item in await list_items(tx, source.id, limit=MOST_LOOKED_THROUGH):
            if item.document is None or item.removed is not None:
                continue
            for page in await load_pages(tx, item.document, limit=1):
                found = WHEN.search(page.text)
                if found and is_between(found[1], arguments):
                    lines.append(f"{found[1].strip()}: {item.title} (document {item.document})")
    text = "\n".join(sorted(lines)) or f"No event from {arguments.first_day} to {arguments.last_day}."
    return ToolResult(text, {"events": len(lines)}, f"the calendar {source.name}")


def is_between(when: str, wanted: ListEvents) -> bool:
    """Whether an event from its first to its last day meets these days; of a series the first one counts."""
    days = list[date]()
    for one in DAY.findall(when):
        with suppress(ValueError):  # 2027-13-41: whoever invites us wrote it
            days.append(date.fromisoformat(one))
    return bool(days) and days[0] <= wanted.last_day and days[-1] >= wanted.first_day


TOOL = Tool(
    "list_events",
    "The events of a calendar of this project between two days.",
    ListEvents,
    list_events,
)
