"""The tool that shows commits of the workspace."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult


class GitLog(Arguments):
    """Which commits."""

    count: int = Field(default=20, ge=1, le=200, description="How many, from the newest on.")
    path: str = Field(default="", max_length=500, description="Only those that changed this file or folder.")


async def git_log(arguments: GitLog, context: ToolContext) -> ToolResult:
    where = [f":(top,literal){arguments.path.strip('/')}"] if arguments.path.strip("/") else []
    said = await (await context.files()).ask_git(
        "log", f"--max-count={arguments.count}", "--no-color", "--format=%h %ad %an: %s", "--date=short", "--", *where
    )
    return ToolResult(said.rstrip() or "There are no such commits.", {}, "git log")


TOOL = Tool("git_log", "The newest commits of the workspace.", GitLog, git_log)
