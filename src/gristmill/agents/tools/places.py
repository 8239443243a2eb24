"""The places outside that agents read and change: sources of the run's own project."""

from collections.abc import Sequence

from gristmill.agents.tools.model import ToolContext
from gristmill.errors import Unknown
from gristmill.sources import Source, list_sources

TRACKERS = ("jira", "github", "gitlab")
WIKIS = ("confluence",)


async def load_places(context: ToolContext) -> list[Source]:
    """The sources of the project of the run, and of its client; never those of somebody else."""
    place = context.place
    async with context.db.reading() as tx:
        of_client = await list_sources(tx, place.client)
    return [one for one in of_client if one.project in ("", place.project)]


async def find_place(context: ToolContext, name: str, kinds: Sequence[str]) -> Source:
    """A source of these kinds in the project of the run, or of its client."""
    found = [one for one in await load_places(context) if one.name == name and one.kind in kinds]
    if not found:
        raise Unknown(f"There is no source “{name}” of the kind {' or '.join(kinds)} in {context.place}.")
    return max(found, key=lambda one: one.project)  # that of the project, before that of the client


async def find_place_of_any_kind(context: ToolContext, name: str) -> Source:
    found = [one for one in await load_places(context) if one.name == name]
    if not found:
        raise Unknown(f"There is no source “{name}” in {context.place}: list_places shows them.")
    return max(found, key=lambda one: one.project)
