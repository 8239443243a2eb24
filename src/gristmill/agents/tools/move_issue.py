"""The tool that moves an issue to another state at a tracker."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.tools.places import TRACKERS, find_place
from gristmill.sources import open_tracker


class MoveIssue(Arguments):
    """Which issue, and where to."""

    tracker: str = Field(max_length=100, description="The name of the source that is the tracker.")
    issue: str = Field(max_length=220, description="MILL-12, or owner/name#12.")
    state: str = Field(min_length=1, max_length=100, description="Its new state, for example Done, or closed.")


async def move_issue(arguments: MoveIssue, context: ToolContext) -> ToolResult:
    """An issue that is in the state already stays there, so that it may be said again."""
    source = await find_place(context, arguments.tracker, TRACKERS)
    async with open_tracker(source) as tracker:
        await tracker.move(arguments.issue, arguments.state)
    return ToolResult(f"{arguments.issue} is {arguments.state} now.")


TOOL = Tool(
    "move_issue",
    "Move an issue to another state at a tracker of this project.",
    MoveIssue,
    move_issue,
    changes="outside",
    sets_state=True,
    targets={"tracker": "name", "issue": "name", "state": "state"},
    summarise=lambda arguments: f"Let {arguments.issue} at {arguments.tracker} be {arguments.state}.",
)
