"""The tool that runs a command in the sandbox."""

import shlex

from pydantic import Field

from gristmill.agents.sandbox import CommandEnd, SandboxLimits, run_in_sandbox
from gristmill.agents.tools.model import Arguments, PreparedEffect, Tool, ToolContext, ToolResult
from gristmill.errors import Refused


class RunCommand(Arguments):
    """Which command."""

    command: str = Field(
        min_length=1,
        max_length=2_000,
        pattern=r"^[^\n\r\x00]+$",
        description="A program and its arguments, for example “make test”. It is no shell: no pipes, no “&&”.",
    )


def split_command(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise Refused(f"The command cannot be read: {error}.") from error
    if not words:
        raise Refused("The command has no words.")
    return words


async def prepare(arguments: RunCommand, context: ToolContext) -> PreparedEffect:
    return PreparedEffect({"words": split_command(arguments.command)})


async def run_words(words: list[str], context: ToolContext) -> ToolResult:
    settings = context.settings.agents
    ended = await run_in_sandbox(words, (await context.files()).folder, SandboxLimits.of(settings), settings.readable)
    return ToolResult(describe_end(ended), {"code": ended.code}, f"the output of {words[0]}")


def describe_end(ended: CommandEnd) -> str:
    how = ended.reason or f"It ended with the code {ended.code}."
    return f"{how}\n\n{ended.said.strip()}".strip()


async def run_command(arguments: RunCommand, context: ToolContext) -> ToolResult:
    return await run_words(split_command(arguments.command), context)


TOOL = Tool(
    "run_command",
    "Run a command in the workspace, in a sandbox without network in which nothing else can be written.",
    RunCommand,
    run_command,
    changes="workspace",
    targets={"command": "command"},
    repeatable=False,
    summarise=lambda arguments: f"Run in the sandbox: {arguments.command}",
    prepare=prepare,
)
