"""The tool that shows the changes of the workspace."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult


class GitDiff(Arguments):
    """Between what, and where."""

    since: str = Field(
        default="HEAD",
        pattern=r"^[\w./~^@{}][\w./~^@{}-]*$",
        max_length=200,
        description="A commit or branch; what changed since then is shown.",
    )
    path: str = Field(default="", max_length=500, description="Only this file or folder; none: all.")


async def git_diff(arguments: GitDiff, context: ToolContext) -> ToolResult:
    where = [f":(top,literal){arguments.path.strip('/')}"] if arguments.path.strip("/") else []
    said = await (await context.files()).ask_git(
        "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", arguments.since, "--", *where
    )
    return ToolResult(said.rstrip() or "Nothing has changed.", {}, "git diff")


TOOL = Tool("git_diff", "The changes of the workspace since a commit.", GitDiff, git_diff)
