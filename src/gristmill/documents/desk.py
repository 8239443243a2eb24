"""Where documents are read: in child processes, each call with a limit of time and memory."""

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from gristmill.documents import reading
from gristmill.documents.model import Document
from gristmill.documents.reading import Inspection, Limits, PageText
from gristmill.errors import Permanent, Transient
from gristmill.knowledge import Piece, chunks
from gristmill.models import engines
from gristmill.queue import ProcessPool, tell
from gristmill.settings import DocumentSettings

TOGETHER = 0.05  # seconds: pages that are read within such a time are settled together
PICTURES = ("pdf", "image")  # the types of which pages may be pictures


class Sheet(NamedTuple):
    """A page to read."""

    path: str
    type: str
    number: int


class Desk:
    """Opens, reads and splits; nothing a file contains can do more than cost its own page an attempt."""

    def __init__(
        self, readers: ProcessPool, splitters: ProcessPool, settings: DocumentSettings, window: int
    ) -> None:  # fmt: skip
        """`window` is how many tokens the embedder sees: no chunk is longer."""
        self._readers = readers
        self._splitters = splitters
        self._longest = min(window + chunks.SPECIAL, chunks.LONGEST)
        self._time = settings.timeout.total_seconds()
        self._memory = settings.memory
        self._limits = Limits(
            bytes=settings.max_bytes, pages=settings.max_pages, pixels=settings.max_pixels,
            unpacked=settings.max_unpacked, parts=settings.max_parts, messages=settings.max_parts,
        )  # fmt: skip

    async def inspect(self, path: Path, name: str, offset: int) -> Inspection:
        return await self._readers.run(
            reading.inspect, str(path), name, self._limits, offset, timeout=self._time, memory=self._memory
        )

    async def read(self, sheets: Sequence[Sheet]) -> AsyncIterator[PageText | Exception]:
        """The pages one by one, in their order, each with its own time.

        Whatever ends the reader is the fault of the page it was at: the others are read by the next one.
        """
        done = 0
        while done < len(sheets):
            heard: deque[PageText | Exception] = deque()
            call = asyncio.create_task(
                self._readers.run(
                    read_pages, sheets[done:], self._limits, timeout=self._time, memory=self._memory,
                    hear=heard.append, in_steps=True,
                )
            )  # fmt: skip
            try:
                while not call.done():
                    await asyncio.wait([call], timeout=TOGETHER)
                    while heard:
                        done += 1
                        yield heard.popleft()
            finally:
                call.cancel()
            error = call.exception()
            if error is not None and done < len(sheets):
                done += 1
                yield error if isinstance(error, Exception) else Transient(str(error))

    async def split(self, texts: Sequence[tuple[str, str]]) -> list[list[Piece]]:
        """The chunks of each page, given as its text and its document's title."""
        if not texts:
            return []
        return await self._splitters.run(split_pages, texts, self._longest, timeout=self._time, memory=self._memory)

    def page_key(self, document: Document, number: int) -> bytes:
        """What the text of a page depends on: the bytes, the page, the program, its limits and who reads pictures."""
        eyes = engines.reader() if document.type in PICTURES else ""
        return _key(document.hash.hex(), document.type, number, reading.VERSION, self._limits.pixels, eyes)

    def split_key(self, text: str, title: str) -> bytes:
        """What the chunks of a page depend on: its text and title, the program and the longest that fits."""
        return _key(text, title, chunks.VERSION, self._longest)


def _key(*means: str | int | None) -> bytes:
    return hashlib.sha256(orjson.dumps(means)).digest()


def read_pages(sheets: Sequence[Sheet], limits: Limits) -> None:
    """In a child process: tells each page, or what is wrong with it; any other error ends the call at this page."""
    for path, type_, number in sheets:
        try:
            found = reading.read(path, type_, number, limits)
        except (Permanent, Transient) as error:
            found = error
        tell(found)


def split_pages(texts: Sequence[tuple[str, str]], longest: int) -> list[list[Piece]]:
    """In a child process."""
    return [chunks.split(text, title=title, limit=longest) for text, title in texts]
