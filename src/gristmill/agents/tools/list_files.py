"""The tool that lists the files of the workspace."""

import asyncio

from pydantic import Field

from gristmill.agents.policy import find_pattern
from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult

MOST_SHOWN = 1_000


class ListFiles(Arguments):
    """Which files."""

    pattern: str = Field(
        default="", max_length=300, description="Only paths that fit, for example *.py or src/**; none: all."
    )


async def list_files(arguments: ListFiles, context: ToolContext) -> ToolResult:
    files = await (await context.files()).list_files()
    found = await asyncio.to_thread(select, files, arguments.pattern)
    more = f"\n… {len(found) - MOST_SHOWN:,} more" if len(found) > MOST_SHOWN else ""
    text = "\n".join(found[:MOST_SHOWN]) + more if found else "There are no such files."
    return ToolResult(text, {"files": len(found)}, "the names of the files in the workspace")


def select(files: list[str], pattern: str) -> list[str]:
    return [one for one in files if not pattern or find_pattern(one, [pattern])]


TOOL = Tool("list_files", "List the files of the workspace.", ListFiles, list_files)
