"""The tool that lists what a source holds: issues, pages, mails, events or commits, as they were polled last."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.tools.places import find_place_of_any_kind
from gristmill.sources import ItemRow
from gristmill.sources import list_items as load_items

MOST_LOOKED_THROUGH = 2_000


class ListItems(Arguments):
    """Of which source, and which of its items."""

    source: str = Field(max_length=100, description="The name of the source, as list_places shows it.")
    contains: str = Field(default="", max_length=200, description="Only items with these words in name or title.")
    limit: int = Field(default=30, ge=1, le=200, description="How many at most, the newest first.")


async def list_items(arguments: ListItems, context: ToolContext) -> ToolResult:
    source = await find_place_of_any_kind(context, arguments.source)
    async with context.db.reading(seen_from=context.place) as tx:
        found = await load_items(tx, source.id, limit=MOST_LOOKED_THROUGH)
    wanted = arguments.contains.casefold()
    fitting = [one for one in found if one.removed is None and wanted in f"{one.external} {one.title}".casefold()]
    shown = fitting[: arguments.limit]
    more = f"\n… {len(fitting) - len(shown):,} more" if len(fitting) > len(shown) else ""
    documents = [int(one.document) for one in shown if one.document is not None]
    text = "\n".join(map(describe, shown)) + more if shown else "There are no such items."
    return ToolResult(text, {"items": len(fitting), "documents": documents}, f"the items of {source.name}")


def describe(one: ItemRow) -> str:
    place = f"document {one.document}" if one.document is not None else one.state.lower()
    return f"{one.external}: {one.title or 'without a title'} ({place}, changed {one.changed_at:%Y-%m-%d})"


TOOL = Tool(
    "list_items",
    "List issues, wiki pages, mails, events or commits of a source; read one by its document with read_document.",
    ListItems,
    list_items,
)
