"""How far documents are, for those who look."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from gristmill.db import Tx, queries
from gristmill.documents.model import GRAPH, OCR, VECTOR, document_of, owner_of
from gristmill.documents.store import SQL
from gristmill.ids import DocumentId, ScopeId, TaskId
from gristmill.scopes import Scope, visible
from gristmill.wording import format_count

COUNTS = queries("gristmill.documents", "progress.sql")
FINAL = frozenset({"completed", "failed", "cancelled"})
MOST_FAILURES = 20
ENDLESS = 2**63 - 1  # an id that no document reaches


@dataclass(frozen=True)
class PhaseProgress:
    """How many of a phase's units are done, of how many that are known."""

    name: str
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
    phases: tuple[PhaseProgress, ...]

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to it by itself."""
        return self.status in FINAL

    @property
    def summary(self) -> str:
        """`11 of 12 pages`, `12 pages`, `40 of 52 chunks` – what a person wants to know first."""
        ocr, vector, graph = self.phases
        if self.pages is None:
            return "not opened" if self.ended else "not opened yet"
        if ocr.done < self.pages or self.pages == 0:
            return f"{ocr.done} of {format_count(self.pages, 'page')}" if self.pages else "no pages"
        done = min(vector.done, graph.done)
        if done < vector.total:
            return f"{format_count(self.pages, 'page')}, {done} of {format_count(vector.total, 'chunk')}"
        if self.ended and not vector.total:
            return f"{format_count(self.pages, 'page')} without text"
        return f"{format_count(self.pages, 'page')}, {format_count(vector.total, 'chunk')}"


@dataclass(frozen=True)
class Failure:
    """A unit that died or had a setback, and of what."""

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
    """How many documents there are, of all clients."""

    documents: int
    completed: int
    with_errors: int


async def progress(tx: Tx, ids: Iterable[DocumentId]) -> list[Progress]:
    return [_progress(row) for row in await tx.all(SQL["progress"], ids=list(ids))]


async def listing(
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
        scopes = await tx.value(SQL["scopes_of"], client=client, project=project) or []
    which = SQL["listing"] if status in (None, "completed") else SQL["listing_incomplete"]
    rows = await tx.all(which, scopes=scopes, status=status, before=ENDLESS if before is None else before, limit=limit)
    return [_progress(row) for row in rows]


async def tally(tx: Tx) -> Tally:
    return Tally(*(await tx.all(COUNTS["tally"]))[0])


async def at_work(tx: Tx) -> list[DocumentId]:
    """The documents that somebody works on right now."""
    return [row.id for row in await tx.all(COUNTS["at_work"])]


async def names_of(tx: Tx, owners: Iterable[str | None]) -> dict[str, str]:
    """The names of the documents that tasks belong to, by the owner that the tasks name."""
    ids = [found for owner in owners if (found := document_of(owner)) is not None]
    return {owner_of(row.id): row.name for row in await tx.all(SQL["names_of"], ids=ids)} if ids else {}


async def types(tx: Tx, scope: Scope) -> list[str]:
    """Of which types the documents are that are seen from here."""
    return [row.type for row in await tx.all(SQL["types"], scopes=await visible(tx, scope))]


async def holds_anything(tx: Tx, scope: Scope) -> bool:
    """Whether anything belongs to this scope or to one of its projects; what else is seen from there does not count."""
    return await tx.value(SQL["holds_anything"], client=scope.client, project=scope.project)


async def failures(tx: Tx, document: DocumentId, *, limit: int = MOST_FAILURES) -> list[Failure]:
    rows = await tx.all(SQL["failures_of"], owner=owner_of(document), limit=limit)
    return [Failure(row.id, row.kind, row.page, row.ordinal, row.error, row.attempts) for row in rows]


async def setbacks(tx: Tx, document: DocumentId, *, limit: int = MOST_FAILURES) -> list[Failure]:
    """What went wrong and will be tried again by itself."""
    rows = await tx.all(SQL["setbacks_of"], owner=owner_of(document), limit=limit)
    return [Failure(row.id, row.kind, row.page, row.ordinal, row.error, row.attempts) for row in rows]


async def skipped(tx: Tx, document: DocumentId) -> list[Skipped]:
    rows = await tx.all(SQL["skipped_of"], id=document)
    return [Skipped(row.phase, row.units, row.reason) for row in rows]


async def pages(tx: Tx, document: DocumentId) -> Sequence[Any]:
    """The rows of page_status."""
    return await tx.all(SQL["pages_of"], id=document)


async def with_parts(tx: Tx, ids: Iterable[DocumentId]) -> list[DocumentId]:
    """Documents and what was found in them so far."""
    return [row.id for row in await tx.all(SQL["with_parts"], ids=list(ids))]


def _progress(row: Any) -> Progress:
    chunks = row.total_chunks
    return Progress(
        id=row.id,
        name=row.filename,
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
        pages=row.total_pages,
        phases=(
            PhaseProgress(OCR, row.ocr_status, row.ocr_completed_pages, row.ocr_failed_pages, row.total_pages or 0),
            PhaseProgress(
                VECTOR, row.vector_index_status, row.vector_completed_chunks, row.vector_failed_chunks, chunks
            ),
            PhaseProgress(
                GRAPH, row.graphrag_index_status, row.graphrag_completed_chunks, row.graphrag_failed_chunks, chunks
            ),
        ),
    )
