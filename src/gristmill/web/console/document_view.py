"""One document as its page shows it: how far it is, its pages by status, what went wrong where, what lies around it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gristmill.db import Tx
from gristmill.documents import (
    Document,
    DocumentFilter,
    DocumentLink,
    DocumentPortion,
    PageProgress,
    Phase,
    Progress,
    Skipped,
    UnitFailure,
    find_documents,
    has_picture,
    list_containers,
    list_failures,
    list_pages,
    list_phases,
    list_setbacks,
    list_skipped,
    load_documents,
    load_progress,
    place_error,
)
from gristmill.errors import Unknown
from gristmill.ids import DocumentId, TaskId

MOST_PARTS = 50
AROUND = 40  # thumbnails before and after the page at hand
WORST_FIRST = ("failed", "processing", "pending", "cancelled", "completed", "skipped")


@dataclass(frozen=True)
class Trouble:
    """Something that went wrong, where it did, and the phase that is tried again."""

    task: TaskId
    sentence: str
    phase: str
    page: int | None
    ordinal: int | None
    attempts: int
    is_final: bool  # it will not be tried again without a person


@dataclass(frozen=True)
class Thumbnail:
    """A page as a small picture with its status."""

    number: int
    status: str
    error: str | None


@dataclass(frozen=True)
class DocumentView:
    """A document, and everything around it that fits beside a list."""

    document: Document
    progress: Progress
    troubles: Sequence[Trouble]
    skipped: Sequence[Skipped]
    containers: Sequence[DocumentLink]
    parts: DocumentPortion
    thumbnails: Sequence[Thumbnail]

    @property
    def id(self) -> DocumentId:
        return self.document.id

    @property
    def has_picture(self) -> bool:
        return has_picture(self.document.type)

    @property
    def is_working(self) -> bool:
        return not self.progress.has_ended


async def find_document_view(tx: Tx, id_: DocumentId, page: int = 1) -> DocumentView | None:
    """The document, unless it is gone or another client's."""
    found = await load_documents(tx, [id_])
    progress = await load_progress(tx, [id_])
    if not found or not progress:
        return None
    return DocumentView(
        document=found[id_],
        progress=progress[0],
        troubles=await _load_troubles(tx, id_),
        skipped=await list_skipped(tx, id_),
        containers=await list_containers(tx, id_),
        parts=await find_documents(tx, DocumentFilter(container=id_), limit=MOST_PARTS),
        thumbnails=await load_thumbnails(tx, id_, page),
    )


async def load_document_view(tx: Tx, id_: DocumentId, page: int = 1) -> DocumentView:
    view = await find_document_view(tx, id_, page)
    if view is None:
        raise Unknown(f"There is no document {id_}: a newer version may have taken its place.")
    return view


async def load_thumbnails(tx: Tx, id_: DocumentId, page: int) -> list[Thumbnail]:
    """The pages around the one at hand."""
    pages = await list_pages(tx, id_, first=max(1, page - AROUND), last=page + AROUND)
    return [Thumbnail(one.number, judge_page(one), _first_error(one)) for one in pages]


def judge_page(page: PageProgress) -> str:
    """One status for a page: the worst of its phases; a phase that had nothing to do says nothing."""
    found = {phase.status for phase in page.phases}
    return next((status for status in WORST_FIRST if status in found), "pending")


def _first_error(page: PageProgress) -> str | None:
    return next((phase.error for phase in page.phases if phase.status == "failed" and phase.error), None)


async def _load_troubles(tx: Tx, id_: DocumentId) -> list[Trouble]:
    phases = {phase.kind: phase for phase in await list_phases(tx)}
    dead = [(failure, True) for failure in await list_failures(tx, id_)]
    passing = [(failure, False) for failure in await list_setbacks(tx, id_)]
    return [_describe_trouble(failure, phases, is_final) for failure, is_final in (*dead, *passing)]


def _describe_trouble(failure: UnitFailure, phases: Mapping[str, Phase], is_final: bool) -> Trouble:
    phase = phases.get(failure.kind)
    return Trouble(
        failure.task,
        place_error(failure.page, failure.error),
        phase.name if phase else "",
        failure.page,
        failure.ordinal,
        failure.attempts,
        is_final,
    )
