"""The tool that commits the changes of the workspace."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Bench, Prepared, Tool, ToolResult
from gristmill.agents.workspaces import Workspace, name_author
from gristmill.errors import Refused

TRAILER = "Gristmill-Effect"
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
    return [entry[3:] for entry in said.split("\0") if len(entry) > 3 and not entry.endswith("/")]


async def prepare(arguments: GitCommit, bench: Bench) -> Prepared:
    """Which files on which branch: that is what the policy judges, and what is committed."""
    branch = (await (await bench.files()).ask_git("rev-parse", "--abbrev-ref", "HEAD")).strip()
    changed = await find_changes(await bench.files())
    wanted = [one for one in changed if not arguments.paths or one in arguments.paths]
    if not wanted:
        raise Refused("There is nothing to commit: no such file has changed.")
    parent = (await (await bench.files()).ask_git("rev-parse", "HEAD")).strip()
    return Prepared({"parent": parent, "files": wanted}, wanted, branch)


async def git_commit(arguments: GitCommit, bench: Bench) -> ToolResult:
    files, prepared = await bench.files(), bench.begun.row.prepared
    if bench.begun.is_repeated and (found := await find_commit(files, bench.begun.key)):
        return ToolResult(f"Committed as {found}.", {"commit": found})
    branch = (await files.ask_git("rev-parse", "--abbrev-ref", "HEAD")).strip()
    if branch != prepared["branch"]:
        raise Refused(f"The workspace is on the branch {branch} now, and no longer on {prepared['branch']}.")
    paths = "".join(f":(top,literal){one}\0" for one in prepared["data"]["files"])
    spec = ("--pathspec-from-file=-", "--pathspec-file-nul")
    await files.ask_git("add", "--all", *spec, given=paths)
    message = f"{arguments.message.strip()}\n\n{TRAILER}: {bench.begun.key}\n"
    await files.ask_git(*name_author(), "commit", "--quiet", "--no-verify", "--only", "-m", message, *spec, given=paths)
    commit = (await files.ask_git("rev-parse", "HEAD")).strip()
    return ToolResult(f"Committed as {commit}.", {"commit": commit})


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
