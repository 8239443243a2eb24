"""The tool that runs the tests of the workspace."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.tools.run_command import prepare, run_words, split_command


class RunTests(Arguments):
    """How the tests are run."""

    command: str = Field(
        default="make test",
        min_length=1,
        max_length=2_000,
        pattern=r"^[^\n\r\x00]+$",
        description="The command that runs the tests, for example “make test” or “python3 -m pytest -q tests”.",
    )


async def run_tests(arguments: RunTests, context: ToolContext) -> ToolResult:
    """Tests may be run again: they are made to be."""
    return await run_words(split_command(arguments.command), context)


TOOL = Tool(
    "run_tests",
    "Run the tests of the workspace, in a sandbox without network in which nothing else can be written.",
    RunTests,
    run_tests,
    changes="workspace",
    targets={"command": "command"},
    summarise=lambda arguments: f"Run the tests in the sandbox: {arguments.command}",
    prepare=prepare,  # pyright: ignore[reportArgumentType] the same argument under the same name
)
