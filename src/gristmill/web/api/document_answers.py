"""How documents, pages and chunks look over HTTP."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from gristmill.documents import Progress, Taken

Status = Literal["pending", "processing", "completed", "failed", "skipped", "cancelled"]


class FromAttributes(BaseModel):
    """Made of a thing of the house with the same names."""

    model_config = ConfigDict(from_attributes=True)


class PhaseAnswer(FromAttributes):
    """How many of a phase's units are done, of how many that are known."""

    name: str
    label: str
    unit: Literal["page", "chunk"]
    status: Status
    done: int
    failed: int
    total: int


class DocumentAnswer(FromAttributes):
    """One version of one source, and how far it is."""

    id: int
    name: str
    client: str = Field(description="Whose it is; empty: everybody's.")
    project: str
    urn: str = Field(description="Where it comes from; a new version comes under the same one.")
    version: int
    type: str | None = Field(description="By content; none until it was opened.")
    title: str | None
    container: int | None = Field(description="The document that it lies in.")
    part_of: str | None = Field(description="The name of that document.")
    added_at: datetime
    completed_at: datetime | None
    status: Status
    summary: str = Field(description="How far it is, in words.", examples=["11 of 12 pages"])
    pages: int | None
    chunks: int
    phases: list[PhaseAnswer]


class FailureAnswer(FromAttributes):
    """A page or chunk that failed, and its error."""

    task: int
    kind: str
    page: int | None
    ordinal: int | None
    error: str
    attempts: int


class SkippedAnswer(FromAttributes):
    phase: str
    units: int
    reason: str


class LinkAnswer(FromAttributes):
    """A document by name."""

    id: int
    name: str
    type: str | None


class DetailAnswer(DocumentAnswer):
    """All that is known of a document itself."""

    size: int = Field(description="Of its bytes.")
    hash: str = Field(description="SHA-256 of its bytes, in hexadecimal digits.")
    metadata: dict[str, Any]
    has_picture: bool = Field(description="Whether its pages can be seen as pictures.")
    containers: list[LinkAnswer] = Field(description="The documents that it lies in, the outermost first.")
    failures: list[FailureAnswer]
    setbacks: list[FailureAnswer] = Field(description="Failures that will be tried again without anybody's doing.")
    skipped: list[SkippedAnswer]


class PartAnswer(DocumentAnswer):
    has_parts: bool


class TreeAnswer(BaseModel):
    """Where a document lies, and a portion of the documents that lie in it."""

    containers: list[LinkAnswer]
    document: DocumentAnswer
    parts: list[PartAnswer]
    next: str | None = None


class TakenAnswer(BaseModel):
    """What became of one file."""

    name: str
    urn: str
    status: Literal["added", "changed", "unchanged", "failed", "cancelled", "refused"]
    document: int | None
    reason: str | None = None


class TakenAnswers(BaseModel):
    """What became of each file, in their order: one that is refused does not stop the others."""

    items: list[TakenAnswer]


class ImpactAnswer(FromAttributes):
    """What a removal takes: nodes and edges without other evidence go, the others become weaker."""

    documents: int
    pages: int
    chunks: int
    tasks: int
    nodes: int
    edges: int
    nodes_weaker: int
    edges_weaker: int


class RefusalAnswer(FromAttributes):
    id: int
    reason: str


class RetryAnswer(FromAttributes):
    """The tasks that are pending again, and those that are not and why."""

    tasks: list[int]
    refused: list[RefusalAnswer]


class ReindexAnswer(BaseModel):
    document: int = Field(description="The new version, which takes the place of the old one when it is whole.")


class PagePhaseAnswer(FromAttributes):
    name: str
    label: str
    status: Status
    error: str | None
    started_at: datetime | None
    finished_at: datetime | None
    retries: int


class PageAnswer(FromAttributes):
    """How far a page is in each phase."""

    number: int
    method: str | None
    chunks: int
    phases: list[PagePhaseAnswer]


class TextAnswer(FromAttributes):
    number: int
    method: str = Field(description="text: it carried its text; ocr: it was read from its picture; copied; note.")
    text: str = Field(description="Markdown.")


class ChunkAnswer(FromAttributes):
    """A chunk: `start` and `stop` are characters of the text of its page."""

    id: int
    page: int
    ordinal: int
    start: int
    stop: int
    tokens: int
    kind: str
    language: str | None
    heading: str
    text: str
    phases: dict[str, Status]


class BoxAnswer(FromAttributes):
    """A part of the page's text and the rectangle in which it stands, in shares of the picture's sides (0 to 1)."""

    start: int
    stop: int
    left: float
    top: float
    right: float
    bottom: float


class BoxesAnswer(BaseModel):
    boxes: list[BoxAnswer]
    note: str | None = Field(None, description="Why there are none, if places are not known.")


class VersionAnswer(FromAttributes):
    """A version of a source; without `document` a newer one took its place, and its text alone is left."""

    version: int
    document: int | None
    name: str
    title: str | None
    type: str | None
    added_at: datetime
    replaced_at: datetime | None
    pages: int | None


class VersionTextAnswer(BaseModel):
    version: int
    pages: list[str]


def describe(progress: Progress) -> DocumentAnswer:
    return DocumentAnswer.model_validate(progress)


def describe_all(found: Iterable[Progress]) -> list[DocumentAnswer]:
    return [describe(one) for one in found]


def describe_taken(taken: Taken) -> TakenAnswer:
    return TakenAnswer(
        name=taken.name, urn=taken.urn, status=taken.status, document=taken.document, reason=taken.reason
    )


def describe_part(progress: Progress, has_parts: bool) -> PartAnswer:
    return PartAnswer(**describe(progress).model_dump(), has_parts=has_parts)
