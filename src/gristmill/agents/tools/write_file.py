"""The tool that writes a file of the workspace."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, PreparedEffect, Tool, ToolContext, ToolResult
from gristmill.agents.workspaces import LARGEST, split_path


class WriteFile(Arguments):
    """Which file, and all of its text."""

    path: str = Field(max_length=500, description="The path from the top of the repository.")
    text: str = Field(max_length=LARGEST, description="The whole text of the file.")


async def prepare(arguments: WriteFile, context: ToolContext) -> PreparedEffect:
    return PreparedEffect(files=["/".join(split_path(arguments.path))])


async def write_file(arguments: WriteFile, context: ToolContext) -> ToolResult:
    await (await context.files()).write(arguments.path, arguments.text)
    return ToolResult(f"{arguments.path} has {len(arguments.text.splitlines()):,} lines now.")


TOOL = Tool(
    "write_file",
    "Write a text file of the workspace as a whole: a new one, or in place of the one that is there.",
    WriteFile,
    write_file,
    changes="workspace",
    targets={"path": "path"},
    summarise=lambda arguments: f"Write {arguments.path} in the workspace.",
    prepare=prepare,
)
