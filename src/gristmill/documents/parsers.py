"""Opens, reads and divides documents in child processes, each call with a limit of time and memory."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import process_time
from typing import NamedTuple

from gristmill.documents import child_failures, reading
from gristmill.documents.child_failures import CHILD_FAILURES, ChildFailure
from gristmill.documents.model import Document
from gristmill.documents.reading import Bookmark, Inspection, Limits, PageText, Shunned
from gristmill.errors import Permanent, Transient
from gristmill.knowledge import Piece, chunks
from gristmill.models import describe_engines
from gristmill.processes import Crashed, ProcessPool, TimedOut, tell
from gristmill.settings import DocumentSettings

MOMENT = 0.1  # seconds: pages that are read within it are read in one call, and settled together


def make_limits(settings: DocumentSettings) -> Limits:
    return Limits(
        bytes=settings.max_bytes,
        pages=settings.max_pages,
        pixels=settings.max_pixels,
        unpacked=settings.max_unpacked,
        parts=settings.max_parts,
    )


class PageToRead(NamedTuple):
    """Where a page is found."""

    path: str
    type: str
    number: int


class Parsers:
    """The child processes that parse. The worst that a hostile file can do is to cost its own page an attempt."""

    def __init__(self, readers: ProcessPool, splitters: ProcessPool, settings: DocumentSettings, window: int) -> None:
        """`window` is how many tokens the embedder sees: no chunk is longer."""
        self._readers = readers
        self._splitters = splitters
        self._longest = min(window + chunks.SPECIAL_TOKENS, chunks.LONGEST)
        self._time = settings.timeout.total_seconds()
        self._memory = settings.memory
        self._limits = make_limits(settings)

    async def inspect(self, path: Path, name: str, start: Bookmark, known_type: str | None = None) -> Inspection:
        """What a file is, and what lies in it.

        If a reader dies at an attachment, the file is opened again without it, and the attachment is refused.
        """
        begun: list[int] = []
        try:
            return await self._inspect(path, name, start, known_type, begun.append)
        except CHILD_FAILURES as error:
            if not begun:
                raise self._explain(error, "The file", "open") from error
        why = child_failures.explain_attachment(seconds=self._time, memory=self._memory)
        try:
            return await self._inspect(path, name, replace(start, shunned=Shunned(begun[-1], why)), known_type)
        except CHILD_FAILURES as error:
            raise self._explain(error, "The file", "open") from error

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

    async def read(self, wanted: Sequence[PageToRead]) -> AsyncIterator[tuple[int, PageText | Exception | None]]:
        """The pages as they are read, each with its place in the list and with a time limit of its own.

        Quick pages are read together, in one call. Slow pages are read one a call, as many as there are readers; for
        the others None comes back, and they are asked for again: a person's page must not wait behind them. When a
        reader dies, the page that it was at is to blame, and no other.
        """
        async for place, found in self._read(wanted):
            if isinstance(found, CHILD_FAILURES):
                found = self._explain(found, f"Page {wanted[place].number}", "read")
            yield place, found

    async def _read(self, wanted: Sequence[PageToRead]) -> AsyncIterator[tuple[int, PageText | Exception | None]]:
        quick = [place for place, page in enumerate(wanted) if page.type != "image"]
        slow = [place for place, page in enumerate(wanted) if page.type == "image"]
        careful = False
        while quick:
            answered, found = 0, None
            try:
                async for found in self._read_quick([wanted[place] for place in quick], careful=careful):
                    yield quick[answered], found
                    answered += 1
                careful = False
            except (Crashed, TimedOut):
                careful = True
            quick = quick[answered:]
            if not careful and (answered == 1 or isinstance(found, TimedOut)):  # the others may be slow, too
                slow, quick = quick + slow, []
        async for place, page in self._read_slow(wanted, slow):
            yield place, page

    async def _read_slow(
        self, wanted: Sequence[PageToRead], slow: Sequence[int]
    ) -> AsyncIterator[tuple[int, PageText | Exception | None]]:
        for place in slow[self._readers.size :]:
            yield place, None
        calls = {asyncio.create_task(self._read_one(wanted[n])): n for n in slow[: self._readers.size]}
        try:
            while calls:
                ended, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
                for call in ended:
                    yield calls.pop(call), call.result()
        finally:
            for call in calls:
                call.cancel()

    async def _read_one(self, page: PageToRead) -> PageText | Exception:
        heard: list[PageText | Exception] = []
        try:
            await self._run_readers([page], heard.append)
        except Exception as error:  # noqa: BLE001 it is the answer of this page
            return error
        return heard[0]

    async def _read_quick(self, wanted: Sequence[PageToRead], *, careful: bool) -> AsyncIterator[PageText | Exception]:
        """The first pages, as many as one call reads in a moment, and at least one.

        A reader that dies loses the pages that it had read and not yet sent. So does one that hangs, because the code
        in which it hangs may stop the thread that sends. If it is not clear at which page the reader was, its error is
        raised. A `careful` call sends every page at once, and so makes it clear.
        """
        heard: deque[PageText | Exception] = deque()
        answered = 0
        call = asyncio.create_task(self._run_readers(wanted, heard.append, careful=careful))
        try:
            while not call.done():
                await asyncio.wait([call], timeout=MOMENT)
                while heard:
                    answered += 1
                    yield heard.popleft()
        finally:
            call.cancel()
        error = call.exception()
        if isinstance(error, Crashed | TimedOut) and not careful and len(wanted) - answered > 1:
            raise error
        if error is not None and answered < len(wanted):
            yield error if isinstance(error, Exception) else Transient(str(error))

    async def _run_readers(
        self, wanted: Sequence[PageToRead], hear: Callable[[PageText | Exception], None], *, careful: bool = False
    ) -> None:
        bare = [tuple(page) for page in wanted]  # a class of our own takes four times as long to write and read
        await self._readers.run(
            read_pages, bare, self._limits, careful, timeout=self._time, memory=self._memory, hear=hear, in_steps=True
        )

    async def split(self, texts: Sequence[tuple[str, str]]) -> list[list[Piece]]:
        """The chunks of each page, given as its text and its document's title."""
        if not texts:
            return []
        try:
            return await self._splitters.run(split_pages, texts, self._longest, timeout=self._time, memory=self._memory)
        except CHILD_FAILURES as error:
            raise self._explain(error, "The text", "divide into chunks") from error

    def _explain(self, error: ChildFailure, what: str, doing: str) -> ChildFailure:
        return child_failures.explain(error, what, doing, seconds=self._time, memory=self._memory)

    def page_key(self, document: Document, number: int) -> bytes:
        """Everything that the text of a page depends on: bytes, page, program, limits and the reader of pictures."""
        eyes = describe_engines() if document.type in reading.PICTURES else ""
        return reading.make_page_key(document.hash, document.type, number, self._limits.pixels, eyes)

    def split_key(self, text: str, title: str) -> bytes:
        """Everything that the chunks of a page depend on: text, title, program and the longest chunk that fits."""
        return reading.make_key(text, title, chunks.VERSION, self._longest)


def read_pages(wanted: Sequence[tuple[str, str, int]], limits: Limits, careful: bool) -> None:
    """In a child process: sends each page, or what is wrong with it; any other error ends the call at this page.

    The call ends after a moment, so that other readers can take the pages that are left. The moment is time of the
    processor: on a busy machine every page takes long, and calls of few pages would only make it busier. The time for
    opening the file does not count: its pages are not slow because the file is large.
    """
    end = process_time() - reading.measure_opening() + MOMENT
    for path, type_, number in wanted:
        try:
            found = reading.read(path, type_, number, limits)
        except (Permanent, Transient) as error:
            found = error
        tell(found, now=careful)
        if process_time() - reading.measure_opening() > end:
            return


def split_pages(texts: Sequence[tuple[str, str]], longest: int) -> list[list[Piece]]:
    """In a child process."""
    return [chunks.split(text, title=title, limit=longest) for text, title in texts]
