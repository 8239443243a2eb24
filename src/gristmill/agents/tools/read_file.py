"""The tool that reads a file of the workspace."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult

MOST_LINES = 2_000


class ReadFile(Arguments):
    """Which file, and which part of it."""

    path: str = Field(description="The path from the top of the repository.")
    first_line: int = Field(default=1, ge=1, description="Where to begin.")
    lines: int = Field(default=500, ge=1, le=MOST_LINES, description="How many lines at most.")


async def read_file(arguments: ReadFile, context: ToolContext) -> ToolResult:
    lines = (await (await context.files()).read(arguments.path)).splitlines()
    start = arguments.first_line - 1
    shown = lines[start : start + arguments.lines]
    numbered = "\n".join(f"{n:>5}  {line}" for n, line in enumerate(shown, arguments.first_line))
    left = len(lines) - start - len(shown)
    more = f"\n… {left:,} more lines" if left > 0 else ""
    return ToolResult(f"{numbered}{more}", {"lines": len(lines)}, f"the file {arguments.path}")


TOOL = Tool("read_file", "Read a text file of the workspace, with line numbers.", ReadFile, read_file)
