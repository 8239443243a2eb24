"""The tool that finds words in the files of the workspace (grep)."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.errors import Refused

MOST_LINES = 300
LONGEST_LINE = 400  # characters


class SearchFiles(Arguments):
    """What is looked for, and where."""

    pattern: str = Field(min_length=1, max_length=500, description="A regular expression (POSIX, extended).")
    folder: str = Field(default="", max_length=500, description="Only below this folder; none: everywhere.")
    ignore_case: bool = Field(default=False, description="Whether capitals do not count.")
    is_literal: bool = Field(default=False, description="Whether the pattern is meant character by character.")


async def search_files(arguments: SearchFiles, context: ToolContext) -> ToolResult:
    words = ["grep", "--untracked", "--line-number", "-I", "--no-color", "--max-count=50"]
    words += ["--ignore-case"] if arguments.ignore_case else []
    words += ["--fixed-strings" if arguments.is_literal else "--extended-regexp", "-e", arguments.pattern, "--"]
    words += [f":(top,literal){arguments.folder.strip('/')}"] if arguments.folder.strip("/") else []
    try:
        said = await (await context.files()).ask_git(*words)
    except Refused as error:
        if "it says nothing" not in str(error):  # git complains if there is no such pattern, and is silent otherwise
            raise
        return ToolResult("Nothing was found.", {"lines": 0})
    lines = [line[:LONGEST_LINE] for line in said.splitlines()]
    more = f"\n… {len(lines) - MOST_LINES:,} more lines" if len(lines) > MOST_LINES else ""
    text = "\n".join(lines[:MOST_LINES]) + more
    return ToolResult(text, {"lines": len(lines)}, "files of the workspace")


TOOL = Tool(
    "search_files",
    "Find lines in the files of the workspace by a regular expression.",
    SearchFiles,
    search_files,
)
