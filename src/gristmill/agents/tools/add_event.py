"""The tool that puts an event into a calendar at a server (CalDAV)."""

from pydantic import Field

from gristmill.agents.tools.events import EventArguments, describe, write_calendar
from gristmill.agents.tools.model import Tool, ToolContext, ToolResult
from gristmill.agents.tools.places import find_place
from gristmill.sources import put_event


class AddEvent(EventArguments):
    """An event, and the calendar that it is for."""

    calendar: str = Field(max_length=100, description="The name of the source that is the calendar.")


async def add_event(arguments: AddEvent, context: ToolContext) -> ToolResult:
    """The name of the event is made of the key, and the server is told to take none of this name twice."""
    begun = context.begun
    source = await find_place(context, arguments.calendar, ("caldav",))
    content = write_calendar(arguments, key=begun.key, now=begun.row.intended_at)
    is_new = await put_event(source, begun.key, content)
    said = "is" if is_new else "was already"
    return ToolResult(f"The event {said} in the calendar {arguments.calendar}.", {"uid": f"{begun.key}@gristmill"})


TOOL = Tool(
    "add_event",
    "Put an event into a calendar of this project; those who come are invited if its server does so.",
    AddEvent,
    add_event,
    changes="outside",
    targets={"calendar": "name", "attendees": "recipient"},
    summarise=lambda arguments: f"Put into the calendar {arguments.calendar}: {describe(arguments)}",
)
