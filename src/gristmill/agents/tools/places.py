"""The places outside that agents change: sources of the run's own project."""

from collections.abc import Sequence

from gristmill.agents.tools.model import Bench
from gristmill.errors import Unknown
from gristmill.sources import Source, list_sources

TRACKERS = ("jira", "github", "gitlab")
WIKIS = ("confluence",)


async def find_place(bench: Bench, name: str, kinds: Sequence[str]) -> Source:
    """A source of these kinds in the project of the run, or of its client; never one of somebody else."""
    place = bench.place
    async with bench.db.reading() as tx:
        of_client = await list_sources(tx, place.client)
    found = [one for one in of_client if one.name == name and one.kind in kinds and one.project in ("", place.project)]
    if not found:
        raise Unknown(f"There is no source “{name}” of the kind {' or '.join(kinds)} in {place}.")
    return max(found, key=lambda one: one.project)  # that of the project, before that of the client
