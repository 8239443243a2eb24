"""Watches the progress of documents for many listeners at once: one look at all of them, however many listen."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Literal

import orjson

from gristmill.db import Database
from gristmill.documents.following import choose_pause
from gristmill.documents.progress import Progress, load_progress
from gristmill.ids import DocumentId
from gristmill.telemetry import log

QUIET = 1.0  # seconds between looks while nothing changes: from LOOK_EVERY up to here


@dataclass(frozen=True)
class ProgressEvent:
    """The state of a document at one moment; `id` is the same for the same state, in every process and after a restart.

    Every event tells all, so a listener that names the last event it has seen misses nothing: it gets the state of now,
    unless that is the state it knows.
    """

    id: str
    what: Literal["progress", "ended", "gone"]
    progress: Progress | None  # None: the document was removed, or a newer version took its place


class ProgressWatcher:
    """Looks at the documents that somebody listens to, as long as somebody does."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._listeners: dict[DocumentId, set[asyncio.Queue[ProgressEvent]]] = {}
        self._last: dict[DocumentId, ProgressEvent] = {}
        self._looking: asyncio.Task[None] | None = None
        self._joined = asyncio.Event()

    async def listen(self, document: DocumentId, last_id: str | None = None) -> AsyncGenerator[ProgressEvent]:
        """The state of a document now, unless its id is `last_id`, and then every change, until it has ended.

        A listener that is slow misses states in between, never the last one.
        """
        heard: asyncio.Queue[ProgressEvent] = asyncio.Queue(maxsize=1)
        self._join(document, heard)
        try:
            while True:
                event = await heard.get()
                if event.id != last_id:
                    last_id = event.id
                    yield event
                if event.what != "progress":
                    return
        finally:
            self._leave(document, heard)

    def _join(self, document: DocumentId, heard: asyncio.Queue[ProgressEvent]) -> None:
        self._listeners.setdefault(document, set()).add(heard)
        self._last.pop(document, None)  # so that the next look tells this listener, too
        self._joined.set()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look_on())

    def _leave(self, document: DocumentId, heard: asyncio.Queue[ProgressEvent]) -> None:
        others = self._listeners.get(document, set())
        others.discard(heard)
        if not others:
            self._listeners.pop(document, None)
            self._last.pop(document, None)
        if not self._listeners and self._looking is not None:
            self._looking.cancel()
            self._looking = None

    async def _look_on(self) -> None:
        pause = 0.0
        loop = asyncio.get_running_loop()
        while self._listeners:
            self._joined.clear()
            began = loop.time()
            try:
                changed = await self._look()
            except Exception as error:  # noqa: BLE001 whoever listens waits with us: the database comes back
                log.warning("watcher.lost", error=str(error)[:200])
                changed = False
            soonest = choose_pause(loop.time() - began)
            pause = soonest if changed else min(max(QUIET, soonest), 2 * max(pause, soonest))
            try:
                await asyncio.wait_for(self._joined.wait(), pause)
            except TimeoutError:
                continue

    async def _look(self) -> bool:
        """Tell the listeners of each document that has changed; whether any has."""
        ids = list(self._listeners)
        async with self._db.reading() as tx:
            found = {one.id: one for one in await load_progress(tx, ids)}
        changed = False
        for document in ids:
            event = make_event(document, found.get(document))
            if self._last.get(document) != event:
                self._last[document] = event
                changed = True
                for heard in self._listeners.get(document, ()):
                    _replace(heard, event)
        return changed


def make_event(document: DocumentId, progress: Progress | None) -> ProgressEvent:
    if progress is None:
        return ProgressEvent(f"{document}-gone", "gone", None)
    state = (
        progress.status,
        progress.title,
        progress.type,
        progress.pages,
        progress.chunks,
        [tuple(phase) for phase in progress.phases],
    )
    digest = hashlib.sha256(orjson.dumps(state)).hexdigest()[:16]
    return ProgressEvent(f"{document}-{digest}", "ended" if progress.has_ended else "progress", progress)


def _replace(heard: asyncio.Queue[ProgressEvent], event: ProgressEvent) -> None:
    if heard.full():
        heard.get_nowait()
    heard.put_nowait(event)
