"""The tool that writes an event as a file of the workspace, in the format of calendars (ICS)."""

from pydantic import Field

from gristmill.agents.tools.events import EventArguments, describe, write_calendar
from gristmill.agents.tools.model import PreparedEffect, Tool, ToolContext, ToolResult
from gristmill.agents.workspaces import split_path


class DraftEvent(EventArguments):
    """An event, and the file that it is written to."""

    path: str = Field(max_length=500, pattern=r"\.ics$", description="A file of the workspace that ends with .ics.")


async def prepare(arguments: DraftEvent, context: ToolContext) -> PreparedEffect:
    return PreparedEffect(files=["/".join(split_path(arguments.path))])


async def draft_event(arguments: DraftEvent, context: ToolContext) -> ToolResult:
    begun = context.begun
    content = write_calendar(arguments, key=begun.key, now=begun.row.intended_at)
    await (await context.files()).write(arguments.path, content.decode())
    return ToolResult(f"The event is in {arguments.path}. Nobody was invited.")


TOOL = Tool(
    "draft_event",
    "Write an event into an .ics file of the workspace. Nobody is invited.",
    DraftEvent,
    draft_event,
    changes="workspace",
    targets={"path": "path"},
    summarise=lambda arguments: f"Write the event {describe(arguments)}",
    prepare=prepare,
)
