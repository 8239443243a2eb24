"""The tool that finds words in the files of the workspace (grep)."""

import re
from dataclasses import replace
from math import prod

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.workspaces import APART, Workspace
from gristmill.errors import Permanent, Refused, Transient

MOST_LINES = 300
LONGEST_LINE = 400  # characters
PATIENCE = 20.0  # seconds
MOST_SAID = 16 << 20  # bytes
MOST_MEMORY = 2 << 30  # bytes
# each count copies what it stands behind, and a count of counts copies the copies
COUNT = re.compile(r"\{(\d{0,9})(?:,(\d{0,9}))?\}")
MOST_COPIES = 3_000


class SearchFiles(Arguments):
    """What is looked for, and where."""

    pattern: str = Field(min_length=1, max_length=500, description="A regular expression (POSIX, extended).")
    folder: str = Field(default="", max_length=500, description="Only below this folder; none: everywhere.")
    ignore_case: bool = Field(default=False, description="Whether capitals do not count.")
    is_literal: bool = Field(default=False, description="Whether the pattern is meant character by character.")


async def search_files(arguments: SearchFiles, context: ToolContext) -> ToolResult:
    if not arguments.is_literal:
        check_pattern(arguments.pattern)
    words = ["grep", "--untracked", "--threads=1", "--line-number", "-I", "--no-color", "--max-count=50"]
    words += ["--ignore-case"] if arguments.ignore_case else []
    words += ["--fixed-strings" if arguments.is_literal else "--extended-regexp", "-e", arguments.pattern, "--"]
    words += [f":(top,literal){arguments.folder.strip('/')}"] if arguments.folder.strip("/") else []
    said = await grep(await context.files(), words)
    if not said:
        return ToolResult("Nothing was found.", {"lines": 0})
    lines = [line[:LONGEST_LINE] for line in said.splitlines()]
    more = f"\n… {len(lines) - MOST_LINES:,} more lines" if len(lines) > MOST_LINES else ""
    text = "\n".join(lines[:MOST_LINES]) + more
    return ToolResult(text, {"lines": len(lines)}, "files of the workspace")


def check_pattern(pattern: str) -> None:
    """Refused if the pattern could take hours or all memory."""
    if re.search(r"\\[1-9]", pattern):
        raise Refused("A pattern that looks for what it has found before (\\1) may take hours: write another one.")
    counts = [int(most or least or 1) for least, most in COUNT.findall(pattern)]
    if prod(max(1, one) for one in counts) > MOST_COPIES:
        raise Refused("The counts in braces are too large together: write smaller ones, or * and +.")


async def grep(files: Workspace, words: list[str]) -> str:
    """The lines that git found, within limits; nothing if there are none."""
    git = replace(files.git, most_memory=MOST_MEMORY)
    try:
        return (await git.run(*APART, *words, patience=PATIENCE, most=MOST_SAID)).decode(errors="replace")
    except Permanent as error:
        if "said more than" not in str(error):
            raise
        raise Refused("The pattern fits too much: write one that fits less, or name a folder.") from error
    except Transient as error:
        if "it says nothing" in str(error):  # git complains if there is no such pattern, and is silent otherwise
            return ""
        raise Refused(str(error)) from error


TOOL = Tool(
    "search_files",
    "Find lines in the files of the workspace by a regular expression.",
    SearchFiles,
    search_files,
)
