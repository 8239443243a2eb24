"""Calendars in files of this machine: every event of every `.ics` file is an item."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import Field

from gristmill.errors import Permanent
from gristmill.settings import Slice
from gristmill.sources.calendar.dividing import divide_calendar
from gristmill.sources.calendar.events import describe_event
from gristmill.sources.folder.connector import FolderConnector, FoundFile, find_by_suffix, read_item
from gristmill.sources.model import Batch, Checkpoint, Connector, ConnectorContext, Kind, Listed, RawItem
from gristmill.sources.store import check_external
from gristmill.wording import format_count

PORTION = 200  # events that are handed over together
SHELVES = 256
BESIDE = re.compile("#")  # between the name of a file and the UID of an event


class IcsOptions(Slice):
    """Where the calendars are."""

    path: str = Field(min_length=1, description="The folder of .ics files.")


@dataclass(frozen=True)
class IcsConnector:
    """The checkpoint holds one digest for each shelf of files: a shelf on which nothing has changed is not opened.

    It does not grow with the files: each of them stands on the shelf that its name chooses.
    """

    files: FolderConnector
    context: ConnectorContext

    async def check(self) -> str:
        return f"It has {format_count(len(await self._find()), 'calendar')}."

    async def _find(self) -> list[FoundFile]:
        return await asyncio.to_thread(self.files.find_all)

    async def changes(self, checkpoint: Checkpoint) -> AsyncIterator[Batch]:
        before: dict[str, str] = dict(checkpoint.get("shelves", {}))
        shelves = fill_shelves(await asyncio.to_thread(self.files.find_readable))
        done = {name: digest for name, digest in before.items() if name in shelves}
        for name, files in shelves.items():
            digest = digest_files(files)
            if before.get(name) == digest:
                continue
            async for items in self._divide(files):
                unlike = await self.context.known.find_unlike([Listed(one.external, one.mark) for one in items])
                wanted = {one.external for one in unlike}
                if fresh := [item for item in items if item.external in wanted]:
                    yield Batch({"shelves": dict(done)} if done else checkpoint, fresh)
            done[name] = digest
        yield Batch({"shelves": done})

    async def list_ids(self) -> AsyncIterator[Sequence[Listed]]:
        async for items in self._divide(await self._find()):
            yield [Listed(item.external, item.mark) for item in items]

    async def fetch(self, ids: Sequence[str]) -> AsyncIterator[RawItem]:
        wanted = set(ids)
        # a UID may have the same sign in it: every beginning could be the name of a file
        names = {one[: found.start()] for one in ids for found in BESIDE.finditer(one)} | wanted
        async for items in self._divide([file for file in await self._find() if file.external in names]):
            for item in items:
                if item.external in wanted:
                    yield item

    async def _divide(self, files: Sequence[FoundFile]) -> AsyncIterator[list[RawItem]]:
        """The events of these files, in portions."""
        some = list[RawItem]()
        for file in files:
            some += await asyncio.to_thread(_divide_file, file, self.context.max_bytes)
            while len(some) >= PORTION:
                yield some[:PORTION]
                some = some[PORTION:]
        if some:
            yield some


def fill_shelves(files: Sequence[FoundFile]) -> dict[str, list[FoundFile]]:
    """Files by the shelf that their names choose."""
    shelves = dict[str, list[FoundFile]]()
    for file in files:
        shelf = int.from_bytes(sha256(file.external.encode()).digest()[:4], "big") % SHELVES
        shelves.setdefault(str(shelf), []).append(file)
    return shelves


def digest_files(files: Sequence[FoundFile]) -> str:
    marks = "\0".join(f"{file.external}\0{file.mark}" for file in files)
    return sha256(marks.encode()).hexdigest()[:16]


def _divide_file(file: FoundFile, max_bytes: int) -> list[RawItem]:
    """The events of a file; one that cannot be divided is an item by itself, to be set aside."""
    whole = read_item(file, max_bytes)
    if whole is None:
        return []
    if whole.refusal:
        return [whole]
    try:
        events = divide_calendar(whole.content)
    except Permanent:
        return [whole]
    return [
        RawItem(check_external(f"{file.external}#{uid}"), event, sha256(event).hexdigest()[:16])
        for uid, event in events.items()
    ]


def open_ics(options: IcsOptions, context: ConnectorContext) -> AbstractAsyncContextManager[Connector]:
    files = FolderConnector(Path(options.path).expanduser(), find_by_suffix(".ics", ".ical"), context)
    return nullcontext(IcsConnector(files, context))


ICS = Kind("ics", "Calendars in a folder of .ics files.", IcsOptions, open_ics, describe_event)
