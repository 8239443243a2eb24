"""The tool that changes a part of a file of the workspace."""

from collections.abc import Iterator
from hashlib import sha256

from pydantic import Field

from gristmill.agents.tools.model import Arguments, PreparedEffect, Tool, ToolContext, ToolResult
from gristmill.agents.workspaces import split_path
from gristmill.errors import Refused

LONGEST = 200_000  # characters of a part
AROUND = 2  # lines that are shown before and behind it


class PatchFile(Arguments):
    """Which words of which file are to be replaced."""

    path: str = Field(max_length=500, description="The path from the top of the repository.")
    old: str = Field(min_length=1, max_length=LONGEST, description="The words that stand there now, exactly once.")
    new: str = Field(max_length=LONGEST, description="The words that shall stand there instead.")


def replace_once(text: str, arguments: PatchFile) -> str:
    found = text.count(arguments.old)
    if found != 1:
        where = "do not stand" if not found else f"stand {found} times"
        raise Refused(f"The old words {where} in {arguments.path}: give more of the lines around, exactly as they are.")
    return text.replace(arguments.old, arguments.new)


async def prepare(arguments: PatchFile, context: ToolContext) -> PreparedEffect:
    """How the file is before and after: after a kill it is seen whether it was written."""
    before = await (await context.files()).read(arguments.path)
    after = replace_once(before, arguments)
    difference = "\n".join(show_change(before.splitlines(), after.splitlines()))
    data = {"before": _hash(before), "after": _hash(after), "difference": difference[:20_000]}
    return PreparedEffect(data, ["/".join(split_path(arguments.path))])


async def patch_file(arguments: PatchFile, context: ToolContext) -> ToolResult:
    prepared = context.begun.row.prepared["data"]
    text = await (await context.files()).read(arguments.path)
    if _hash(text) == prepared["before"]:
        await (await context.files()).write(arguments.path, replace_once(text, arguments))
    elif _hash(text) != prepared["after"]:
        raise Refused(f"{arguments.path} was changed meanwhile: read it again.")
    return ToolResult(f"{arguments.path} is changed:\n{prepared['difference']}")


def show_change(before: list[str], after: list[str]) -> Iterator[str]:
    """The lines from the first that differs to the last. A search for more equal lines among them may never end."""
    shorter = min(len(before), len(after))
    first = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    same = next((n for n in range(shorter - first) if before[-1 - n] != after[-1 - n]), shorter - first)
    start, end, new_end = max(0, first - AROUND), len(before) - same, len(after) - same
    behind = before[end : end + AROUND]
    old_lines, new_lines = end - start + len(behind), new_end - start + len(behind)
    yield f"@@ -{start + 1},{old_lines} +{start + 1},{new_lines} @@"
    yield from (f" {line}" for line in before[start:first])
    yield from (f"-{line}" for line in before[first:end])
    yield from (f"+{line}" for line in after[first:new_end])
    yield from (f" {line}" for line in behind)


def _hash(text: str) -> str:
    return sha256(text.encode(errors="replace")).hexdigest()


TOOL = Tool(
    "patch_file",
    "Replace words in a text file of the workspace that stand there exactly once.",
    PatchFile,
    patch_file,
    changes="workspace",
    targets={"path": "path"},
    summarise=lambda arguments: f"Change {arguments.path} in the workspace.",
    prepare=prepare,
)
