"""Looks at documents again and again while they are ground, for a terminal or a page that shows them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass

from gristmill.db import Database, Tx, outlast_outage
from gristmill.documents.phases.definition import list_phases
from gristmill.documents.progress import (
    Progress,
    find_parts,
    list_failures,
    load_progress,
)
from gristmill.errors import Refused, Unreachable
from gristmill.ids import DocumentId
from gristmill.queue import list_queues

LOOK_EVERY = 0.3  # seconds between looks …
LOOK_SHARE = 9  # … or so many times as long as a look took
SERVED_SOON = 2.0  # seconds without a worker after which a person is told that there is none …
SERVED_WITHIN = 15.0  # … and after which nobody waits any longer …
STARTED_WITHIN = 180.0  # … unless the caller starts workers itself: a busy machine needs its time for that
MOST_ERRORS = 3  # of one document


@dataclass(frozen=True)
class DocumentsNow:
    """Documents at one moment."""

    all: Sequence[Progress]  # that are followed, those that have ended included
    open: Sequence[Progress]  # that had not ended at the look before
    is_unattended: bool  # no worker has been there for a moment; true in one look only


async def follow_documents(
    db: Database, ids: Iterable[DocumentId], warn: Callable[[str], None], *, has_workers: bool = False
) -> AsyncGenerator[DocumentsNow]:
    """Look at these documents, and at the documents found in them, until all have ended.

    An outage of the database is waited for, with a word to `warn`. If no worker comes, the rest is refused; a caller
    that `has_workers` of its own waits longer for them.
    """
    patience = STARTED_WITHIN if has_workers else SERVED_WITHIN
    open_ = list(ids)
    found: dict[DocumentId, Progress] = {}
    loop = asyncio.get_running_loop()
    attendance = Attendance(loop.time(), patience)
    while True:
        began = loop.time()
        try:
            # all of one moment: a part that comes between two statements would be missed
            async with db.transaction(snapshot=True) as tx:
                looked = await load_progress(tx, [*open_, *await find_parts(tx, open_)])
                is_served = attendance.note(await has_worker(tx), loop.time())
        except Unreachable as error:
            await outlast_outage(db, warn, error)
            attendance = Attendance(loop.time(), patience)  # the workers need a moment, too
            continue
        found |= {one.id: one for one in looked}
        for id_ in set(open_).difference(one.id for one in looked):
            found.pop(id_, None)  # it was removed, or a newer version took its place
        open_ = [one.id for one in looked if not one.has_ended]
        unattended = bool(open_) and attendance.has_just_lapsed(loop.time())
        yield DocumentsNow([found[id_] for id_ in sorted(found)], looked, unattended)
        if not open_:
            return
        if not is_served:
            raise Refused(
                "Nobody works on these documents: start gristmill up, or gristmill worker, and look again with "
                "gristmill documents."
            )
        await asyncio.sleep(choose_pause(loop.time() - began))


class Attendance:
    """Remembers when a worker was seen last: a worker that dies has a successor in a moment."""

    def __init__(self, now: float, patience: float) -> None:
        self._last = now
        self._patience = patience
        self._has_lapsed = False

    def note(self, has_worker: bool, now: float) -> bool:
        """Whether a worker is there, or was a short while ago."""
        if has_worker:
            self._last = now
        return now - self._last < self._patience

    def has_just_lapsed(self, now: float) -> bool:
        """Whether no worker has been there for a moment; true once."""
        self._has_lapsed, before = self._has_lapsed or now - self._last > SERVED_SOON, self._has_lapsed
        return self._has_lapsed and not before


def choose_pause(took: float) -> float:
    """Seconds until the next look, after one that took so long: to look at thousands must not slow them down."""
    return max(LOOK_EVERY, LOOK_SHARE * took)


async def has_worker(tx: Tx) -> bool:
    """Whether a worker is there that works on documents."""
    reports = {report.name: report for report in await list_queues(tx)}
    queues = ["documents", *(phase.queue for phase in await list_phases(tx))]
    return any(reports[name].workers for name in queues if name in reports)


async def explain_failures(tx: Tx, found: Iterable[Progress]) -> list[tuple[Progress, str]]:
    """The first errors of each document that has failed, each in one sentence."""
    return [
        (one, place_error(failure.page, failure.error))
        for one in found
        if one.status == "failed"
        for failure in await list_failures(tx, one.id, limit=MOST_ERRORS)
    ]


def place_error(page: int | None, error: str) -> str:
    """The error with its page, unless it names the page itself."""
    return error if page is None or error.startswith(f"Page {page} ") else f"page {page}: {error}"
