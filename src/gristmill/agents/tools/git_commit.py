"""The tool that commits the changes of the workspace."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from gristmill.agents.tools.model import Arguments, PreparedEffect, Tool, ToolContext, ToolResult
from gristmill.agents.workspaces import Workspace, is_draft, name_author
from gristmill.errors import Refused
from gristmill.wording import format_count

TRAILER = "Gristmill-Effect"
BY_PATHS = ("--pathspec-from-file=-", "--pathspec-file-nul")
MOST_SHOWN = 1_000  # files that a person is shown
LONGEST_DIFF = 200_000  # characters
PLAIN = ("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
MOST_LOOKED_AT = 50  # commits among which an earlier attempt is looked for


class GitCommit(Arguments):
    """What is committed, and why."""

    message: str = Field(min_length=1, max_length=5_000, description="A subject, an empty line, and the reasons.")
    paths: list[str] = Field(
        default_factory=list[str], max_length=500, description="The files to commit; none: all that have changed."
    )


async def find_changes(files: Workspace) -> list[str]:
    """The changed, new and deleted files; a repository within the workspace is none."""
    said = await files.ask_git(
        "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=all"
    )
    paths = [entry[3:] for entry in said.split("\0") if len(entry) > 3]
    return [one for one in paths if not one.endswith("/") and not is_draft(one)]


async def show_difference(files: Workspace, changed: Sequence[str]) -> dict[str, object]:
    """The changes of these files as a person is shown them; what was left out is said."""
    new = (await files.ask_git("ls-files", "-z", "--others", "--exclude-standard")).split("\0")
    if unknown := [one for one in new if one in set(changed)]:
        # git shows the text of a new file only if the index knows its name
        async with files.writing:
            await files.ask_git("add", "--intent-to-add", *BY_PATHS, given=write_paths(unknown))
    paths = [f":(top,literal){one}" for one in changed[:MOST_SHOWN]]
    diff = await files.ask_git("diff", *PLAIN, "HEAD", "--", *paths) if paths else ""
    shown: dict[str, object] = {"files": list(changed[:MOST_SHOWN]), "diff": diff[:LONGEST_DIFF]}
    shown["contents"] = await files.hash_files(changed)
    if left_out := name_left_out(len(changed) - MOST_SHOWN, len(diff) - LONGEST_DIFF):
        shown["left_out"] = left_out
    return shown


def name_left_out(files: int, characters: int, commits: int = 0) -> str:
    things = ((commits, "commit"), (files, "file"), (characters, "character"))
    parts = [format_count(n, thing) for n, thing in things if n > 0]
    return f"Not shown: {' and '.join(parts)} more. Look at the workspace before you agree." if parts else ""


def write_paths(paths: Sequence[str]) -> str:
    return "".join(f":(top,literal){one}\0" for one in paths)


async def prepare(arguments: GitCommit, context: ToolContext) -> PreparedEffect:
    """Which files on which branch: that is what the policy judges, and what is committed."""
    branch = (await (await context.files()).ask_git("rev-parse", "--abbrev-ref", "HEAD")).strip()
    changed = await find_changes(await context.files())
    wanted = [one for one in changed if not arguments.paths or one in arguments.paths]
    if not wanted:
        raise Refused("There is nothing to commit: no such file has changed.")
    parent = (await (await context.files()).ask_git("rev-parse", "HEAD")).strip()
    shown = await show_difference(await context.files(), wanted)
    return PreparedEffect({**shown, "parent": parent, "files": wanted}, wanted, branch)


async def git_commit(arguments: GitCommit, context: ToolContext) -> ToolResult:
    files = await context.files()
    async with files.writing:
        return await commit(arguments, context, files)


async def commit(arguments: GitCommit, context: ToolContext, files: Workspace) -> ToolResult:
    prepared = context.begun.row.prepared
    if context.begun.is_repeated and (found := await find_commit(files, context.begun.key)):
        return ToolResult(f"Committed as {found}.", {"commit": found})
    branch = (await files.ask_git("rev-parse", "--abbrev-ref", "HEAD")).strip()
    if branch != prepared["branch"]:
        raise Refused(f"The workspace is on the branch {branch} now, and no longer on {prepared['branch']}.")
    await check_unchanged(files, prepared["data"])
    paths = write_paths(prepared["data"]["files"])
    await files.ask_git("add", "--all", *BY_PATHS, given=paths)
    message = f"{arguments.message.strip()}\n\n{TRAILER}: {context.begun.key}\n"
    words = (*name_author(), "commit", "--quiet", "--no-verify", "--only", "-m", message)
    await files.ask_git(*words, *BY_PATHS, given=paths)
    commit = (await files.ask_git("rev-parse", "HEAD")).strip()
    return ToolResult(f"Committed as {commit}.", {"commit": commit})


async def check_unchanged(files: Workspace, prepared: Mapping[str, Any]) -> None:
    """Refused if something else would be committed than was looked at when it was approved."""
    if (await files.ask_git("rev-parse", "HEAD")).strip() != prepared["parent"]:
        raise Refused("The branch has got a commit since this one was prepared: look again, then commit anew.")
    if prepared.get("contents") not in (None, await files.hash_files(prepared["files"])):
        raise Refused("The files have changed since this commit was prepared: look at them again, then commit anew.")


async def find_commit(files: Workspace, key: str) -> str | None:
    """The commit that an earlier attempt made, by the key in its message."""
    said = await files.ask_git(
        "log", f"--max-count={MOST_LOOKED_AT}", "--fixed-strings", f"--grep={TRAILER}: {key}", "--format=%H"
    )
    return next(iter(said.split()), None)


TOOL = Tool(
    "git_commit",
    "Commit changed files of the workspace on its branch.",
    GitCommit,
    git_commit,
    changes="workspace",
    summarise=lambda arguments: f"Commit in the workspace: {arguments.message.strip().splitlines()[0]}.",
    prepare=prepare,
)
