"""Where documents are read: in child processes, each call with a limit of time and memory."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

import orjson

from gristmill.documents import reading
from gristmill.documents.model import Document
from gristmill.documents.reading import Inspection, Limits, PageText
from gristmill.knowledge import Piece, chunks
from gristmill.models import engines
from gristmill.queue import ProcessPool
from gristmill.settings import DocumentSettings

P = ParamSpec("P")
R = TypeVar("R")
PICTURES = ("pdf", "image")  # the types of which pages may be pictures


@dataclass(frozen=True)
class Read:
    """A page, and the chunks it falls into."""

    page: PageText
    pieces: tuple[Piece, ...]


class Desk:
    """Opens, reads and splits; nothing a file contains can do more than cost one call."""

    def __init__(self, pool: ProcessPool, settings: DocumentSettings, window: int) -> None:
        """`window` is how many tokens the embedder sees: no chunk is longer."""
        self._pool = pool
        self._longest = min(window + chunks.SPECIAL, chunks.LONGEST)
        self._time = settings.timeout.total_seconds()
        self._memory = settings.memory
        self._limits = Limits(
            bytes=settings.max_bytes, pages=settings.max_pages, pixels=settings.max_pixels,
            unpacked=settings.max_unpacked, parts=settings.max_parts, messages=settings.max_parts,
        )  # fmt: skip

    async def inspect(self, path: Path, name: str, offset: int) -> Inspection:
        return await self._run(reading.inspect, str(path), name, self._limits, offset)

    async def read(self, path: Path, document: Document, number: int) -> Read:
        assert document.type is not None, "a page is read when its document was opened"
        title = document.title or ""
        return await self._run(read_and_split, str(path), document.type, number, self._limits, title, self._longest)

    async def split(self, page: PageText, title: str) -> Read:
        return await self._run(split_page, page, title, self._longest)

    def key(self, document: Document, number: int) -> bytes:
        """What the text of a page depends on: the bytes, the page, the program, its limits and who reads pictures."""
        eyes = engines.reader() if document.type in PICTURES else ""
        means = [document.hash.hex(), document.type, number, reading.VERSION, self._limits.pixels, eyes]
        return hashlib.sha256(orjson.dumps(means)).digest()

    async def _run(self, function: Callable[P, R], *args: P.args, **_: P.kwargs) -> R:
        return await self._pool.run(function, *args, timeout=self._time, memory=self._memory)


def read_and_split(path: str, type_: str, number: int, limits: Limits, title: str, longest: int) -> Read:
    """In a child process."""
    return split_page(reading.read(path, type_, number, limits), title, longest)


def split_page(page: PageText, title: str, longest: int) -> Read:
    """In a child process."""
    return Read(page, tuple(chunks.split(page.text, title=title, limit=longest)))
