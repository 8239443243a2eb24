"""The tool that writes a new page of a wiki."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.tools.places import WIKIS, find_place
from gristmill.sources import open_wiki


class CreatePage(Arguments):
    """Where, and what it says."""

    wiki: str = Field(max_length=100, description="The name of the source that is the wiki.")
    space: str = Field(max_length=100, description="The key of the space.")
    title: str = Field(min_length=1, max_length=250, pattern=r"^[^\r\n]+$", description="One line, new in its space.")
    text: str = Field(min_length=1, max_length=200_000, description="The page, in Markdown.")


async def create_page(arguments: CreatePage, context: ToolContext) -> ToolResult:
    source = await find_place(context, arguments.wiki, WIKIS)
    async with open_wiki(source) as wiki:
        page = await wiki.create(arguments.space, arguments.title, arguments.text)
    return ToolResult(f"The page is {page.id}: {page.url}", {"page": page.id, "url": page.url})


TOOL = Tool(
    "create_page",
    "Write a new page of a wiki of this project.",
    CreatePage,
    create_page,
    changes="outside",
    targets={"wiki": "name", "space": "name"},
    repeatable=False,
    summarise=lambda arguments: f"Write the page “{arguments.title}” in {arguments.space} at {arguments.wiki}.",
)
