"""Calendars in files of this machine: every event of every `.ics` file is an item."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import Field

from gristmill.errors import Permanent
from gristmill.settings import Slice
from gristmill.sources.calendar.events import describe_event, divide_calendar
from gristmill.sources.folder.connector import FolderConnector, Found, find_by_suffix, read_item
from gristmill.sources.model import Batch, Bench, Checkpoint, Connector, Kind, Listed, RawItem
from gristmill.sources.store import check_external
from gristmill.wording import format_count

PORTION = 200  # events that are handed over together


class IcsOptions(Slice):
    """Where the calendars are."""

    path: str = Field(min_length=1, description="The folder of .ics files.")


@dataclass(frozen=True)
class IcsConnector:
    """The checkpoint holds the mark of each file: one that has not changed is not opened."""

    files: FolderConnector
    bench: Bench

    async def check(self) -> str:
        return f"It has {format_count(len(await self._find()), 'calendar')}."

    async def _find(self) -> list[Found]:
        return await asyncio.to_thread(self.files.find_all)

    async def changes(self, checkpoint: Checkpoint) -> AsyncIterator[Batch]:
        marks: dict[str, str | None] = dict(checkpoint.get("files", {}))
        found = await self._find()
        for file in found:
            if file.mark is not None and marks.get(file.external) == file.mark:
                continue
            items = await asyncio.to_thread(_divide_file, file, self.bench.max_bytes)
            for start in range(0, len(items), PORTION):
                yield Batch(checkpoint if not marks else {"files": dict(marks)}, items[start : start + PORTION])
            marks[file.external] = file.mark
        there = {file.external for file in found}
        yield Batch({"files": {name: mark for name, mark in marks.items() if name in there}})

    async def list_ids(self) -> AsyncIterator[Sequence[Listed]]:
        for file in await self._find():
            items = await asyncio.to_thread(_divide_file, file, self.bench.max_bytes)
            yield [Listed(item.external, item.mark) for item in items]

    async def fetch(self, ids: Sequence[str]) -> AsyncIterator[RawItem]:
        wanted = set(ids)
        for file in await self._find():
            for item in await asyncio.to_thread(_divide_file, file, self.bench.max_bytes):
                if item.external in wanted:
                    yield item


def _divide_file(file: Found, max_bytes: int) -> list[RawItem]:
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


def open_ics(options: IcsOptions, bench: Bench) -> AbstractAsyncContextManager[Connector]:
    files = FolderConnector(Path(options.path).expanduser(), find_by_suffix(".ics", ".ical"), bench)
    return nullcontext(IcsConnector(files, bench))


ICS = Kind("ics", "Calendars in a folder of .ics files.", IcsOptions, open_ics, describe_event)
