"""The tool that lists the sources of a project: its trackers, wikis, calendars, mailboxes and repositories."""

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.tools.places import load_places


class ListPlaces(Arguments):
    """Nothing is to be said."""


async def list_places(arguments: ListPlaces, context: ToolContext) -> ToolResult:
    found = await load_places(context)
    lines = [f"{one.name} ({one.kind}){', paused' if one.paused else ''}" for one in found]
    return ToolResult("\n".join(lines) or "The project has no sources.", {"places": len(found)}, "the list of sources")


TOOL = Tool(
    "list_places",
    "The names and kinds of the project's sources: trackers, wikis, calendars, mailboxes, repositories.",
    ListPlaces,
    list_places,
)
