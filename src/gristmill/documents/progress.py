"""How far documents are: each of them, its pages, and all of them together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from gristmill.db import Column, Tx, queries
from gristmill.documents.letters import (
    BuildGraph,
    EmbedChunk,
    FinishDocument,
    OpenDocument,
    ReadPage,
    SealPhase,
    SplitPage,
)
from gristmill.documents.model import document_of, owner_of
from gristmill.documents.phases.definition import Phase, Unit, list_phases
from gristmill.documents.store import SQL
from gristmill.ids import DocumentId, ScopeId, TaskId
from gristmill.scopes import Scope, visible
from gristmill.wording import format_count

COUNTS = queries("gristmill.documents", "progress.sql")
FINAL = frozenset({"completed", "failed", "cancelled"})
# of the tasks of documents, whose errors are counted
KINDS = [one.kind for one in (OpenDocument, ReadPage, SplitPage, EmbedChunk, BuildGraph, SealPhase, FinishDocument)]
MOST_FAILURES = 20
ENDLESS = 2**63 - 1  # an id that no document reaches


class PhaseProgress(NamedTuple):
    """How many of a phase's units are done, of how many that are known.

    A tuple, because a list of many documents has several of each: a dataclass takes four times as long to make.
    """

    name: str
    label: str
    unit: Unit
    status: str
    done: int
    failed: int
    total: int


@dataclass(frozen=True)
class Progress:
    """One document and its phases."""

    id: DocumentId
    name: str
    client: str
    project: str
    urn: str
    version: int
    type: str | None
    title: str | None
    container: DocumentId | None
    part_of: str | None  # the container's name
    added_at: datetime
    completed_at: datetime | None
    status: str
    pages: int | None
    chunks: int  # that are known
    phases: tuple[PhaseProgress, ...]

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen to it by itself."""
        return self.status in FINAL

    @property
    def summary(self) -> str:
        """`11 of 12 pages`, `12 pages`, `40 of 52 chunks` – what a person wants to know first."""
        if self.pages is None:
            return "not opened" if self.has_ended else "not opened yet"
        pages, done = format_count(self.pages, "page"), self._done_in_all("page")
        if done < self.pages or self.pages == 0:
            return f"{done} of {pages}" if self.pages else "no pages"
        if (done := self._done_in_all("chunk")) < self.chunks:
            return f"{pages}, {done} of {format_count(self.chunks, 'chunk')}"
        if self.has_ended and not self.chunks:
            return f"{pages} without text"
        return f"{pages}, {format_count(self.chunks, 'chunk')}"

    def phase(self, name: str) -> PhaseProgress | None:
        """One of its phases; None if it is older than the phase."""
        return next((phase for phase in self.phases if phase.name == name), None)

    def _done_in_all(self, unit: Unit) -> int:
        """How many pages, or chunks, all of their phases are done with."""
        known = self.pages or 0 if unit == "page" else self.chunks
        return min((phase.done for phase in self.phases if phase.unit == unit), default=known)


@dataclass(frozen=True)
class PagePhase:
    """How far one page is in one phase."""

    name: str
    label: str
    status: str
    error: str | None  # of a skipped phase the reason
    worker: int | None
    started_at: datetime | None
    finished_at: datetime | None
    retries: int
    heartbeat_at: datetime | None


@dataclass(frozen=True)
class PageProgress:
    """One page and its phases."""

    number: int
    method: str | None  # how its text was come by
    chunks: int
    phases: tuple[PagePhase, ...]


@dataclass(frozen=True)
class UnitFailure:
    """A page or chunk that failed, for good or for now, and its error."""

    task: TaskId
    kind: str
    page: int | None
    ordinal: int | None
    error: str
    attempts: int


@dataclass(frozen=True)
class Skipped:
    """How many units a phase had nothing to do with, and why."""

    phase: str
    units: int
    reason: str


@dataclass(frozen=True)
class Tally:
    """How many documents there are."""

    documents: int
    completed: int
    errors: int  # tasks of documents that failed for good


class _ProgressRow(NamedTuple):
    """A row of the view `document_progress`."""

    id: DocumentId
    name: str
    client: str
    project: str
    urn: str
    version: int
    type: str | None
    title: str | None
    container: DocumentId | None
    part_of: str | None
    added_at: datetime
    completed_at: datetime | None
    status: str
    pages: int | None
    chunks: int | None
    phases: list[str]
    phase_status: list[str]
    phase_done: list[int]
    phase_failed: list[int]


class _PageRow(NamedTuple):
    """A row of the view `page_phase`: one page in one phase."""

    page: int
    method: str | None
    chunks: int
    phase: str
    label: str
    status: str
    error: str | None
    worker: int | None
    started_at: datetime | None
    finished_at: datetime | None
    retries: int | None
    heartbeat_at: datetime | None


async def load_progress(tx: Tx, ids: Iterable[DocumentId]) -> list[Progress]:
    return await _describe(tx, await tx.all(SQL["progress"], _ProgressRow, ids=list(ids)))


async def list_documents(
    tx: Tx,
    *,
    client: str | None = None,
    project: str | None = None,
    status: str | None = None,
    before: DocumentId | None = None,
    limit: int = 50,
) -> list[Progress]:
    """The newest first."""
    scopes: list[ScopeId] | None = None
    if client is not None or project is not None:
        scopes = await tx.value(SQL["scopes_of"], list[ScopeId], client=client, project=project) or []
    which = SQL["listing"] if status in (None, "completed") else SQL["listing_incomplete"]
    rows = await tx.all(
        which, _ProgressRow, scopes=scopes, status=status, before=ENDLESS if before is None else before, limit=limit
    )
    return await _describe(tx, rows)


async def count_documents(tx: Tx) -> Tally:
    (tally,) = await tx.all(COUNTS["tally"], Tally, kinds=KINDS)
    return tally


async def list_at_work(tx: Tx) -> list[DocumentId]:
    """The documents that somebody works on right now."""
    return await tx.values(COUNTS["at_work"], Column[DocumentId])


async def names_of(tx: Tx, owners: Iterable[str | None]) -> dict[str, str]:
    """The names of the documents that tasks belong to, by the owner that the tasks name."""
    ids = [found for owner in owners if (found := document_of(owner)) is not None]
    if not ids:
        return {}
    names = await tx.pairs(SQL["names_of"], dict[DocumentId, str], ids=ids)
    return {owner_of(id_): name for id_, name in names.items()}


async def list_types(tx: Tx, scope: Scope | None) -> list[str]:
    """Of which types the documents are that are seen from here; without a scope, from wherever the session looks."""
    scopes = (
        await tx.value(SQL["scopes_of"], list[ScopeId], client=None, project=None)
        if scope is None
        else await visible(tx, scope)
    )
    return await tx.values(SQL["types"], str, scopes=scopes or [])


async def holds_anything(tx: Tx, scope: Scope) -> bool:
    """Whether anything belongs to this scope or to one of its projects; GLOBAL rows do not count."""
    return await tx.only_value(SQL["holds_anything"], bool, client=scope.client, project=scope.project)


async def list_failures(tx: Tx, document: DocumentId, *, limit: int = MOST_FAILURES) -> list[UnitFailure]:
    return await tx.all(SQL["failures_of"], UnitFailure, owner=owner_of(document), limit=limit)


async def list_setbacks(tx: Tx, document: DocumentId, *, limit: int = MOST_FAILURES) -> list[UnitFailure]:
    """Failures that will be tried again without anybody's doing."""
    return await tx.all(SQL["setbacks_of"], UnitFailure, owner=owner_of(document), limit=limit)


async def list_skipped(tx: Tx, document: DocumentId) -> list[Skipped]:
    return await tx.all(SQL["skipped_of"], Skipped, id=document)


async def list_pages(tx: Tx, document: DocumentId, *, first: int = 1, last: int | None = None) -> list[PageProgress]:
    """How far each page is, or each of those from `first` to `last`, as far as their number is known."""
    rows = await tx.all(SQL["pages_of"], _PageRow, id=document, first=first, last=last)
    return [_page(list(alike)) for _, alike in groupby(rows, key=lambda row: row.page)]


def _page(rows: Sequence[_PageRow]) -> PageProgress:
    phases = tuple(
        PagePhase(
            row.phase,
            row.label,
            row.status,
            row.error,
            row.worker,
            row.started_at,
            row.finished_at,
            row.retries or 0,
            row.heartbeat_at,
        )
        for row in rows
    )
    return PageProgress(rows[0].page, rows[0].method, max(row.chunks for row in rows), phases)


async def find_with_parts(tx: Tx, ids: Iterable[DocumentId]) -> list[DocumentId]:
    """These documents, and the documents that were found in them so far; the innermost first."""
    return await tx.values(SQL["with_parts"], Column[DocumentId], ids=list(ids))


async def find_parts(tx: Tx, ids: Iterable[DocumentId]) -> list[DocumentId]:
    """The documents that were found in these so far; notes about them, which nobody brought, are none."""
    return await tx.values(SQL["parts_within"], Column[DocumentId], ids=list(ids))


def list_columns(found: Iterable[Progress]) -> dict[str, str]:
    """The labels of all phases that these documents have, by name, for the head of a table."""
    longest = max((one.phases for one in found), key=len, default=())
    return {phase.name: phase.label for phase in longest}


async def _describe(tx: Tx, rows: Sequence[_ProgressRow]) -> list[Progress]:
    phases = {phase.name: phase for phase in await list_phases(tx)} if rows else {}
    return [_progress(row, phases) for row in rows]


def _progress(row: _ProgressRow, phases: Mapping[str, Phase]) -> Progress:
    counters = zip(row.phases, row.phase_status, row.phase_done, row.phase_failed, strict=True)
    totals = {"page": row.pages or 0, "chunk": row.chunks or 0}
    return Progress(
        id=row.id,
        name=row.name,
        client=row.client,
        project=row.project,
        urn=row.urn,
        version=row.version,
        type=row.type,
        title=row.title,
        container=row.container,
        part_of=row.part_of,
        added_at=row.added_at,
        completed_at=row.completed_at,
        status=row.status,
        pages=row.pages,
        chunks=totals["chunk"],
        phases=tuple(
            PhaseProgress(name, phases[name].label, phases[name].unit, status, done, failed, totals[phases[name].unit])
            for name, status, done, failed in counters
        ),
    )
