"""Where documents are read: in child processes, each call with a limit of time and memory."""

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import NamedTuple

import orjson

from gristmill.documents import mishaps, reading
from gristmill.documents.mishaps import MISHAPS, Mishap
from gristmill.documents.model import Document
from gristmill.documents.reading import Bookmark, Inspection, Limits, PageText, Shunned
from gristmill.errors import Permanent, Transient
from gristmill.knowledge import Piece, chunks
from gristmill.models import describe_engines
from gristmill.processes import Crashed, ProcessPool, TimedOut, tell
from gristmill.settings import DocumentSettings

MOMENT = 0.1  # seconds: pages that are read within it are read in one call, and settled together
PICTURES = ("pdf", "image")  # the types of which pages may be pictures


class Sheet(NamedTuple):
    """A page to read."""

    path: str
    type: str
    number: int


class Desk:
    """Opens, reads and splits; nothing a file contains can do more than cost its own page an attempt."""

    def __init__(self, readers: ProcessPool, splitters: ProcessPool, settings: DocumentSettings, window: int) -> None:
        """`window` is how many tokens the embedder sees: no chunk is longer."""
        self._readers = readers
        self._splitters = splitters
        self._longest = min(window + chunks.SPECIAL_TOKENS, chunks.LONGEST)
        self._time = settings.timeout.total_seconds()
        self._memory = settings.memory
        self._limits = Limits(
            bytes=settings.max_bytes,
            pages=settings.max_pages,
            pixels=settings.max_pixels,
            unpacked=settings.max_unpacked,
            parts=settings.max_parts,
        )

    async def inspect(self, path: Path, name: str, start: Bookmark, known_type: str | None = None) -> Inspection:
        """An attachment that ends a reader is told as one that cannot be had, and the file opened without it."""
        begun: list[int] = []
        try:
            return await self._inspect(path, name, start, known_type, begun.append)
        except MISHAPS as error:
            if not begun:
                raise self._told(error, "The file", "open") from error
        why = mishaps.told_of_attachment(seconds=self._time, memory=self._memory)
        try:
            return await self._inspect(path, name, replace(start, shunned=Shunned(begun[-1], why)), known_type)
        except MISHAPS as error:
            raise self._told(error, "The file", "open") from error

    async def _inspect(
        self,
        path: Path,
        name: str,
        start: Bookmark,
        known_type: str | None,
        hear: Callable[[int], None] = lambda _: None,
    ) -> Inspection:
        return await self._readers.run(
            reading.inspect,
            str(path),
            name,
            self._limits,
            start,
            known_type,
            timeout=self._time,
            memory=self._memory,
            hear=hear,
            in_steps=True,
        )

    async def read(self, sheets: Sequence[Sheet]) -> AsyncIterator[tuple[int, PageText | Exception | None]]:
        """The pages as they come, each with its place among the sheets and with its own time.

        What is quickly read is read together, in one call. Of what is slow, only as much is read as there are readers,
        a page a call; the rest is None, to be asked for again: a person's page must not wait behind it. Whatever ends
        a reader is the fault of the page it was at, and of no other.
        """
        async for place, found in self._read(sheets):
            if isinstance(found, MISHAPS):
                found = self._told(found, f"Page {sheets[place].number}", "read")
            yield place, found

    async def _read(self, sheets: Sequence[Sheet]) -> AsyncIterator[tuple[int, PageText | Exception | None]]:
        quick = [place for place, sheet in enumerate(sheets) if sheet.type != "image"]
        slow = [place for place, sheet in enumerate(sheets) if sheet.type == "image"]
        careful = False
        while quick:
            told, found = 0, None
            try:
                async for found in self._read_quick([sheets[place] for place in quick], careful=careful):
                    yield quick[told], found
                    told += 1
                careful = False
            except (Crashed, TimedOut):
                careful = True
            quick = quick[told:]
            if not careful and (told == 1 or isinstance(found, TimedOut)):  # it took its time, and so may the others
                slow, quick = quick + slow, []
        async for place, page in self._read_slow(sheets, slow):
            yield place, page

    async def _read_slow(
        self, sheets: Sequence[Sheet], slow: Sequence[int]
    ) -> AsyncIterator[tuple[int, PageText | Exception | None]]:
        for place in slow[self._readers.size :]:
            yield place, None
        calls = {asyncio.create_task(self._read_one(sheets[n])): n for n in slow[: self._readers.size]}
        try:
            while calls:
                ended, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
                for call in ended:
                    yield calls.pop(call), call.result()
        finally:
            for call in calls:
                call.cancel()

    async def _read_one(self, sheet: Sheet) -> PageText | Exception:
        heard: list[PageText | Exception] = []
        try:
            await self._run_readers([sheet], heard.append)
        except Exception as error:  # noqa: BLE001 it is the answer of this page
            return error
        return heard[0]

    async def _read_quick(self, sheets: Sequence[Sheet], *, careful: bool) -> AsyncIterator[PageText | Exception]:
        """As many of the first as one call reads in a moment, and at least one.

        A reader that dies takes along what it had read and not yet told; so does one that hangs, as what it hangs in
        may let no other thread go on, not even the one that tells. If that leaves open which page it was at, its end
        is raised, and only with care, with each page told at once, it is known.
        """
        heard: deque[PageText | Exception] = deque()
        told = 0
        call = asyncio.create_task(self._run_readers(sheets, heard.append, careful=careful))
        try:
            while not call.done():
                await asyncio.wait([call], timeout=MOMENT)
                while heard:
                    told += 1
                    yield heard.popleft()
        finally:
            call.cancel()
        error = call.exception()
        if isinstance(error, Crashed | TimedOut) and not careful and len(sheets) - told > 1:
            raise error
        if error is not None and told < len(sheets):
            yield error if isinstance(error, Exception) else Transient(str(error))

    async def _run_readers(
        self, sheets: Sequence[Sheet], hear: Callable[[PageText | Exception], None], *, careful: bool = False
    ) -> None:
        bare = [tuple(sheet) for sheet in sheets]  # a class of our own takes four times as long to write and read
        await self._readers.run(
            read_pages, bare, self._limits, careful, timeout=self._time, memory=self._memory, hear=hear, in_steps=True
        )

    async def split(self, texts: Sequence[tuple[str, str]]) -> list[list[Piece]]:
        """The chunks of each page, given as its text and its document's title."""
        if not texts:
            return []
        try:
            return await self._splitters.run(split_pages, texts, self._longest, timeout=self._time, memory=self._memory)
        except MISHAPS as error:
            raise self._told(error, "The text", "divide into chunks") from error

    def _told(self, error: Mishap, what: str, doing: str) -> Mishap:
        return mishaps.told(error, what, doing, seconds=self._time, memory=self._memory)

    def page_key(self, document: Document, number: int) -> bytes:
        """What the text of a page depends on: the bytes, the page, the program, its limits and who reads pictures."""
        eyes = describe_engines() if document.type in PICTURES else ""
        return _key(document.hash.hex(), document.type, number, reading.VERSION, self._limits.pixels, eyes)

    def split_key(self, text: str, title: str) -> bytes:
        """What the chunks of a page depend on: its text and title, the program and the longest that fits."""
        return _key(text, title, chunks.VERSION, self._longest)


def _key(*means: str | int | None) -> bytes:
    return hashlib.sha256(orjson.dumps(means)).digest()


def read_pages(sheets: Sequence[tuple[str, str, int]], limits: Limits, careful: bool) -> None:
    """In a child process: tells each page, or what is wrong with it; any other error ends the call at this page.

    After a moment it ends, too: what is left can be read by others at the same time. A moment of the processor: on a
    busy machine every page takes long, and calls of few pages would only make it busier. Opening the file does not
    count: the pages are not slow because their file is large.
    """
    end = process_time() - reading.spent_opening() + MOMENT
    for path, type_, number in sheets:
        try:
            found = reading.read(path, type_, number, limits)
        except (Permanent, Transient) as error:
            found = error
        tell(found, now=careful)
        if process_time() - reading.spent_opening() > end:
            return


def split_pages(texts: Sequence[tuple[str, str]], longest: int) -> list[list[Piece]]:
    """In a child process."""
    return [chunks.split(text, title=title, limit=longest) for text, title in texts]
