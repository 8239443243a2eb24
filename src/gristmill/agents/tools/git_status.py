"""The tool that says what has changed in the workspace."""

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult


class GitStatus(Arguments):
    """Nothing is to be said."""


async def git_status(arguments: GitStatus, context: ToolContext) -> ToolResult:
    said = await (await context.files()).ask_git(
        "status", "--short", "--branch", "--untracked-files=all", "--ignore-submodules=all"
    )
    return ToolResult(said.rstrip(), {}, "git status")


TOOL = Tool("git_status", "The branch of the workspace and its changed files.", GitStatus, git_status)
