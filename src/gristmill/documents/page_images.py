"""Pictures of pages for people: drawn in child processes with limits, and kept on disk for the next who looks."""

import asyncio
import os
import tempfile
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, Self, TypeVar

from gristmill.db import Database
from gristmill.documents import child_failures
from gristmill.documents.child_failures import CHILD_FAILURES
from gristmill.documents.disk_space import COMING, remove_oldest
from gristmill.documents.model import Document
from gristmill.documents.pages import Page
from gristmill.documents.parsers import make_limits
from gristmill.documents.reading import (
    PlacedSpan,
    Span,
    draw_page,
    find_in_words,
    find_places,
    has_picture,
    refuse_undrawn,
)
from gristmill.documents.spool import Spool, find_unwanted
from gristmill.errors import Permanent, Unknown
from gristmill.processes import ProcessPool
from gristmill.settings import Settings

R = TypeVar("R")
ImageSize = Literal["thumbnail", "page", "large"]
WIDTHS: dict[ImageSize, int] = {"thumbnail": 240, "page": 1100, "large": 2200}
PROCESSES = 2  # that draw: a person looks at a few pages at a time
PATIENCE = 20.0  # seconds for one page: a person waits for it
SHARE = 16  # the folder is looked through when it may have grown by this part of its limit
FAILED = 1_000  # pages that could not be drawn are remembered, so many …
FAILED_FOR = 600.0  # … and for so many seconds: each try may cost a process
SWEEP = 3600  # seconds after which pictures of removed documents go


class PageImages:
    """Draws pages, each at most once at a time; `async with` ends its processes."""

    def __init__(self, db: Database, settings: Settings) -> None:
        self._db = db
        self._spool = Spool(db, settings.data / "spool", settings.documents.spool)
        self._pool = ProcessPool(PROCESSES, nice=settings.queue.nice)
        self._limits = make_limits(settings.documents)
        self._memory = settings.documents.memory
        self._time = min(PATIENCE, settings.documents.timeout.total_seconds())
        self._folder = settings.data / "images"
        self._room = settings.documents.images
        self._unseen = self._room  # bytes that came since the folder was looked through
        self._swept: float | None = None
        self._coming: dict[str, asyncio.Task[bytes]] = {}
        self._failed: OrderedDict[str, tuple[float, str]] = OrderedDict()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        for task in self._coming.values():
            task.cancel()
        await self._pool.close()

    async def draw(self, document: Document, number: int, size: ImageSize) -> bytes:
        """The picture of a page as WebP; a sentence if its type has none, or if it cannot be drawn."""
        _refuse_unknown_page(document, number)
        name = name_image(document.hash, number, size)
        if (kept := self._read_kept(name)) is not None:
            return kept
        if name not in self._coming:  # many may look at the same page at the same time
            self._coming[name] = asyncio.create_task(self._draw(document, number, size, name))
            self._coming[name].add_done_callback(lambda _: self._coming.pop(name, None))
        return await asyncio.shield(self._coming[name])

    async def find_places(self, document: Document, page: Page, spans: Sequence[Span]) -> list[PlacedSpan]:
        """The rectangles on the picture in which these parts of the page's text stand, in shares of its sides.

        None are known where the page was read from its picture by a program that did not keep them.
        """
        _refuse_unknown_page(document, page.number)
        if page.method == "ocr" or document.type != "pdf":
            return find_in_words(page.words or b"", spans)
        return await self._ask(document, page.number, find_places, page.number, page.text, list(spans))

    async def _draw(self, document: Document, number: int, size: ImageSize, name: str) -> bytes:
        self._refuse_failed(name)
        await self._sweep()
        try:
            drawn = await self._ask(document, number, draw_page, document.type, number, WIDTHS[size], self._limits)
        except Permanent as error:
            self._note_failure(name, str(error))
            raise
        self._keep(name, drawn.data)
        return drawn.data

    async def _ask(self, document: Document, number: int, function: Callable[..., R], *args: object) -> R:
        """Call a function of `reading` on the document's file, in a child process."""
        with self._spool.hold([document.hash]):
            for _ in range(2):  # another process of this machine may need the space of the copy: it is fetched again
                path = str(await self._spool.fetch(document.hash, document.size))
                try:
                    return await self._pool.run(function, path, *args, timeout=self._time, memory=self._memory)
                except (FileNotFoundError, Permanent):
                    if not _is_gone(path):
                        raise
                except CHILD_FAILURES as error:
                    told = child_failures.explain(
                        error, f"Page {number}", "draw", seconds=self._time, memory=self._memory
                    )
                    raise Permanent(str(told)) from error
        raise Permanent(f"The file of document {document.id} has no room on this machine: enlarge documents.spool.")

    # --- what was drawn before

    def _read_kept(self, name: str) -> bytes | None:
        path = self._folder / name
        try:
            about = path.stat()
            os.utime(path, ns=(time.time_ns(), about.st_mtime_ns))
            return path.read_bytes() or None  # a machine that lost its power may have lost all of it
        except FileNotFoundError:
            return None

    def _keep(self, name: str, data: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._unseen += len(data)
        if self._unseen >= self._room // SHARE:
            self._unseen = 0
            remove_oldest(self._folder, self._room, coming=len(data))
        with tempfile.NamedTemporaryFile(dir=self._folder, prefix=COMING, delete=False) as file:
            try:
                file.write(data)
                file.flush()
                os.replace(file.name, self._folder / name)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(file.name)
                raise

    async def _sweep(self) -> None:
        now = time.monotonic()
        if self._swept is None or now - self._swept > SWEEP:
            self._swept = now
            await self.clear()

    async def clear(self) -> None:
        """Remove the pictures of documents that are gone."""
        await clear_images(self._db, self._folder)

    # --- what could not be drawn

    def _note_failure(self, name: str, sentence: str) -> None:
        self._failed[name] = time.monotonic(), sentence
        while len(self._failed) > FAILED:
            self._failed.popitem(last=False)

    def _refuse_failed(self, name: str) -> None:
        at, sentence = self._failed.get(name, (0.0, ""))
        if sentence and time.monotonic() - at < FAILED_FOR:
            raise Permanent(sentence)


def _is_gone(path: str) -> bool:
    return not os.path.exists(path)


def name_image(hash_: bytes, number: int, size: ImageSize) -> str:
    """The name of a picture, which is also what tells it from all others: the same name, the same bytes."""
    return f"{hash_.hex()}-{number}-{size}.webp"


async def clear_images(db: Database, folder: Path) -> None:
    """Remove the pictures of bytes that are in the database no more."""
    with suppress(FileNotFoundError):  # nothing was drawn here yet
        names = [name for name in os.listdir(folder) if name.endswith(".webp")]
        unwanted = await find_unwanted(db, {name.partition("-")[0] for name in names})
        for name in names:
            if name.partition("-")[0] in unwanted:
                (folder / name).unlink(missing_ok=True)


def _refuse_unknown_page(document: Document, number: int) -> None:
    if not has_picture(document.type):
        raise Unknown(refuse_undrawn(document.type))
    if not 1 <= number <= (document.pages or 0):
        raise Unknown(f"Document {document.id} has no page {number}: it has {document.pages or 0}.")
