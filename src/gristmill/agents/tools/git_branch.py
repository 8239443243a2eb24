"""The tool that begins a branch, or goes to one."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, BranchName, PreparedEffect, Tool, ToolContext, ToolResult
from gristmill.errors import Refused


class GitBranch(Arguments):
    """Which branch."""

    branch: BranchName = Field(description="Its name, for example agent/fix-login.")


async def prepare(arguments: GitBranch, context: ToolContext) -> PreparedEffect:
    await (await context.files()).ask_git("check-ref-format", "--branch", arguments.branch)
    return PreparedEffect(branch=arguments.branch)


async def git_branch(arguments: GitBranch, context: ToolContext) -> ToolResult:
    files = await context.files()
    async with files.writing:
        try:
            await files.ask_git("switch", "--quiet", "--no-guess", arguments.branch)
            return ToolResult(f"The workspace is on the branch {arguments.branch}.")
        except Refused:
            await files.ask_git("switch", "--quiet", "--create", arguments.branch)
    return ToolResult(f"The workspace is on the new branch {arguments.branch}.")


TOOL = Tool(
    "git_branch",
    "Begin a branch in the workspace, or go to one that is there.",
    GitBranch,
    git_branch,
    changes="workspace",
    targets={"branch": "branch"},
    summarise=lambda arguments: f"Work on the branch {arguments.branch}.",
    prepare=prepare,
)
