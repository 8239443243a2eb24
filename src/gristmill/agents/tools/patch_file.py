"""The tool that changes a part of a file of the workspace."""

import difflib
from hashlib import sha256

from pydantic import Field

from gristmill.agents.tools.model import Arguments, PreparedEffect, Tool, ToolContext, ToolResult
from gristmill.agents.workspaces import split_path
from gristmill.errors import Refused

LONGEST = 200_000  # characters of a part


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
    difference = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    data = {"before": _hash(before), "after": _hash(after), "difference": "\n".join(difference)[:20_000]}
    return PreparedEffect(data, ["/".join(split_path(arguments.path))])


async def patch_file(arguments: PatchFile, context: ToolContext) -> ToolResult:
    prepared = context.begun.row.prepared["data"]
    text = await (await context.files()).read(arguments.path)
    if _hash(text) == prepared["before"]:
        await (await context.files()).write(arguments.path, replace_once(text, arguments))
    elif _hash(text) != prepared["after"]:
        raise Refused(f"{arguments.path} was changed meanwhile: read it again.")
    return ToolResult(f"{arguments.path} is changed:\n{prepared['difference']}")


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
