"""The tool that pushes a branch of the workspace to its repository."""

from typing import Any

from pydantic import Field

from gristmill.agents.tools.git_commit import LONGEST_DIFF, PLAIN, name_left_out
from gristmill.agents.tools.git_commit import MOST_SHOWN as MOST_FILES
from gristmill.agents.tools.model import Arguments, BranchName, PreparedEffect, Tool, ToolContext, ToolResult
from gristmill.agents.workspaces import Workspace
from gristmill.errors import Permanent, Refused

PATIENCE = 300.0  # seconds
MOST_COMMITS = 1_000  # that a person is shown by their subjects


class GitPush(Arguments):
    """Which branch."""

    branch: BranchName = Field(description="The branch of the workspace that is pushed.")


async def prepare(arguments: GitPush, context: ToolContext) -> PreparedEffect:
    """Which commit goes where: exactly this one is approved, whatever the workspace becomes meanwhile."""
    files = await context.files()
    if files.remote is None:
        raise Refused("The workspace is no clone: there is nowhere to push to.")
    await files.ask_git("check-ref-format", "--branch", arguments.branch)
    commit = (await files.ask_git("rev-parse", "--verify", f"refs/heads/{arguments.branch}^{{commit}}")).strip()
    shown = await show_commits(files, commit)
    return PreparedEffect({"commit": commit, "to": files.remote, **shown}, branch=arguments.branch, pushes=True)


async def show_commits(files: Workspace, commit: str) -> dict[str, Any]:
    """What the repository does not have yet: every commit with its difference, also what a later commit takes back."""
    new = (commit, "--not", "--remotes=origin")
    commits = (await files.ask_git("log", "--no-color", "--format=%h %s", *new)).splitlines()
    named = await files.ask_git("log", "-z", "--name-only", "--no-renames", "-m", "--format=", *new)
    changed = sorted({one for one in named.split("\0") if one})
    # of a merge, what stands in none of the branches that it joins
    diff = await files.ask_git("log", "--patch", "--cc", *PLAIN, "--format=commit %h %an <%ae>%n%n%B", *new)
    shown: dict[str, Any] = {
        "commits": commits[:MOST_COMMITS],
        "files": changed[:MOST_FILES],
        "diff": diff[:LONGEST_DIFF],
    }
    numbers = (len(changed) - MOST_FILES, len(diff) - LONGEST_DIFF, len(commits) - MOST_COMMITS)
    if left_out := name_left_out(*numbers):
        shown["left_out"] = left_out
    return shown


async def git_push(arguments: GitPush, context: ToolContext) -> ToolResult:
    """Pushing the same commit again changes nothing, so that it may be repeated."""
    files, prepared = await context.files(), context.begun.row.prepared["data"]
    commit, to = prepared["commit"], prepared["to"]
    ref = f"refs/heads/{arguments.branch}"
    try:
        await files.git.run("push", "--quiet", "--no-verify", "--", to, f"{commit}:{ref}", patience=PATIENCE)
    except Permanent as error:
        if "rejected" not in str(error) or not await is_there(files, to, ref, commit):
            raise
    return ToolResult(f"{arguments.branch} has {commit[:12]} in {to} now.", {"commit": commit})


async def is_there(files: Workspace, to: str, ref: str, commit: str) -> bool:
    """Whether the branch has this commit already, and others went on from there."""
    await files.git.run("fetch", "--quiet", "--no-tags", "--", to, ref, patience=PATIENCE)
    try:
        await files.ask_git("merge-base", "--is-ancestor", commit, "FETCH_HEAD")
    except Refused:
        return False
    return True


TOOL = Tool(
    "git_push",
    "Push a branch of the workspace to the repository that it was cloned from.",
    GitPush,
    git_push,
    changes="outside",
    sets_state=True,
    targets={"branch": "branch"},
    summarise=lambda arguments: f"Push the branch {arguments.branch} to its repository.",
    prepare=prepare,
)
