"""The tool that lists the work of a project: what came in, how far it is, and when it is due."""

from typing import Literal

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.qualifier import WorkItem
from gristmill.qualifier import list_items as load_items

MOST_LOOKED_THROUGH = 1_000


class ListWork(Arguments):
    """Which work."""

    which: Literal["open", "all"] = Field(default="open", description="What is not done yet, or everything.")
    contains: str = Field(default="", max_length=200, description="Only what has these words in its title.")
    limit: int = Field(default=30, ge=1, le=200, description="How many at most; what is due first comes first.")


async def list_work(arguments: ListWork, context: ToolContext) -> ToolResult:
    async with context.db.reading(seen_from=context.place) as tx:
        found = await load_items(tx, limit=MOST_LOOKED_THROUGH)
    wanted = arguments.contains.casefold()
    fitting = [one for one in found if (one.is_open or arguments.which == "all") and wanted in one.title.casefold()]
    fitting.sort(key=lambda one: (one.deadline is None, one.deadline or one.written_at))
    shown = fitting[: arguments.limit]
    more = f"\n… {len(fitting) - len(shown):,} more" if len(fitting) > len(shown) else ""
    text = "\n".join(map(describe, shown)) + more if shown else "There is no such work."
    return ToolResult(text, {"items": len(fitting)}, "the list of work")


def describe(one: WorkItem) -> str:
    due = f", due {one.deadline:%Y-%m-%d}" if one.deadline else ""
    place = f", document {one.document}" if one.document is not None else ""
    return f"item {one.id}: {one.title} ({one.type}, {one.state}, urgency {one.urgency}{due}{place})"


TOOL = Tool(
    "list_work",
    "The work of this project: mails, issues and tasks that came in, with state, urgency and deadline.",
    ListWork,
    list_work,
)
