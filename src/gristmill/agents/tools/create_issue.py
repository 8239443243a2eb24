"""The tool that opens an issue at a tracker."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.tools.places import TRACKERS, find_place
from gristmill.sources import open_tracker


class CreateIssue(Arguments):
    """Where, and what it says."""

    tracker: str = Field(max_length=100, description="The name of the source that is the tracker.")
    project: str = Field(max_length=200, description="The key of a project (MILL), or owner/name.")
    title: str = Field(min_length=1, max_length=250, pattern=r"^[^\r\n]+$", description="One line.")
    text: str = Field(max_length=30_000, description="What it is about.")


async def create_issue(arguments: CreateIssue, context: ToolContext) -> ToolResult:
    source = await find_place(context, arguments.tracker, TRACKERS)
    async with open_tracker(source) as tracker:
        made = await tracker.open_issue(arguments.project, arguments.title, arguments.text)
    return ToolResult(f"The issue is {made.name}: {made.url}", {"issue": made.name, "url": made.url})


TOOL = Tool(
    "create_issue",
    "Open an issue at a tracker of this project.",
    CreateIssue,
    create_issue,
    changes="outside",
    targets={"tracker": "name", "project": "name"},
    repeatable=False,  # no tracker knows what it was asked before
    summarise=lambda arguments: f"Open an issue in {arguments.project} at {arguments.tracker}: {arguments.title}.",
)
