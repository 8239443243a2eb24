"""The places outside that agents read and change: sources of the run's own project."""

from collections.abc import Sequence

from gristmill.agents.tools.model import Bench
from gristmill.errors import Unknown
from gristmill.sources import Source, list_sources

TRACKERS = ("jira", "github", "gitlab")
WIKIS = ("confluence",)


async def load_places(bench: Bench) -> list[Source]:
    """The sources of the project of the run, and of its client; never those of somebody else."""
    place = bench.place
    async with bench.db.reading() as tx:
        of_client = await list_sources(tx, place.client)
    return [one for one in of_client if one.project in ("", place.project)]


async def find_place(bench: Bench, name: str, kinds: Sequence[str]) -> Source:
    """A source of these kinds in the project of the run, or of its client."""
    found = [one for one in await load_places(bench) if one.name == name and one.kind in kinds]
    if not found:
        raise Unknown(f"There is no source “{name}” of the kind {' or '.join(kinds)} in {bench.place}.")
    return max(found, key=lambda one: one.project)  # that of the project, before that of the client


async def find_place_of_any_kind(bench: Bench, name: str) -> Source:
    found = [one for one in await load_places(bench) if one.name == name]
    if not found:
        raise Unknown(f"There is no source “{name}” in {bench.place}: list_places shows them.")
    return max(found, key=lambda one: one.project)
