"""The tool that rewrites a page of a wiki."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, PreparedEffect, Tool, ToolContext, ToolResult
from gristmill.agents.tools.places import WIKIS, find_place
from gristmill.errors import Refused
from gristmill.sources import FoundPage, open_wiki


class UpdatePage(Arguments):
    """Which page, and all that it shall say."""

    wiki: str = Field(max_length=100, description="The name of the source that is the wiki.")
    page: str = Field(pattern=r"^\d{1,20}$", description="The number of the page, as it stands in its address.")
    text: str = Field(min_length=1, max_length=200_000, description="The whole page, in Markdown.")


async def prepare(arguments: UpdatePage, context: ToolContext) -> PreparedEffect:
    """Which version is replaced: the wiki takes the next one once."""
    source = await find_place(context, arguments.wiki, WIKIS)
    async with open_wiki(source) as wiki:
        return PreparedEffect((await wiki.find(arguments.page))._asdict())


async def update_page(arguments: UpdatePage, context: ToolContext) -> ToolResult:
    source = await find_place(context, arguments.wiki, WIKIS)
    before = FoundPage(**context.begun.row.prepared["data"])
    async with open_wiki(source) as wiki:
        if not await wiki.update(before, arguments.text, context.begun.key):
            now = await wiki.find(arguments.page)
            if (now.version, now.message) != (before.version + 1, context.begun.key):
                raise Refused(f"The page {arguments.page} was changed by somebody else meanwhile: read it again.")
    return ToolResult(f"The page “{before.title}” has a new version: {before.url}", {"url": before.url})


TOOL = Tool(
    "update_page",
    "Rewrite a page of a wiki of this project.",
    UpdatePage,
    update_page,
    changes="outside",
    sets_state=True,
    targets={"wiki": "name", "page": "name"},
    summarise=lambda arguments: f"Rewrite the page {arguments.page} at {arguments.wiki}.",
    prepare=prepare,
)
