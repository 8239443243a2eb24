"""The tool that comments on an issue at a tracker."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.tools.places import TRACKERS, find_place
from gristmill.sources import open_tracker


class CommentOnIssue(Arguments):
    """Which issue, and what is said."""

    tracker: str = Field(max_length=100, description="The name of the source that is the tracker.")
    issue: str = Field(max_length=220, description="MILL-12, or owner/name#12.")
    text: str = Field(min_length=1, max_length=30_000, description="The comment.")


async def comment_on_issue(arguments: CommentOnIssue, context: ToolContext) -> ToolResult:
    source = await find_place(context, arguments.tracker, TRACKERS)
    async with open_tracker(source) as tracker:
        made = await tracker.comment(arguments.issue, arguments.text)
    return ToolResult(f"The comment is on {arguments.issue}. {made.url}".strip(), {"url": made.url})


TOOL = Tool(
    "comment_on_issue",
    "Comment on an issue at a tracker of this project.",
    CommentOnIssue,
    comment_on_issue,
    changes="outside",
    targets={"tracker": "name", "issue": "name"},
    repeatable=False,
    summarise=lambda arguments: f"Comment on {arguments.issue} at {arguments.tracker}.",
)
