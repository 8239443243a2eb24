"""The letters that documents sends itself."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from gristmill.ids import DocumentId


@dataclass(frozen=True)
class OpenDocument:
    """Look at a document: find its type, its pages, and the documents that lie in it."""

    kind: ClassVar[str] = "documents.open"
    document: DocumentId
    offset: int = 0  # of a container: how many of its parts are known already …
    unpacked: int = 0  # … how many bytes these parts have …
    missing: int = 0  # … and how many of them could not be unpacked
    refusal: str = ""  # of a part that could not be unpacked: the reason


@dataclass(frozen=True)
class ReadPage:
    """Turn one page into Markdown."""

    kind: ClassVar[str] = "ocr.read"
    document: DocumentId
    page: int


@dataclass(frozen=True)
class SplitPage:
    """Divide the Markdown of one page into chunks."""

    kind: ClassVar[str] = "vector.split"  # a step between two phases: a worker that runs the second one runs it, too
    document: DocumentId
    page: int


@dataclass(frozen=True)
class EmbedChunk:
    """Make one chunk searchable."""

    kind: ClassVar[str] = "vector.embed"
    document: DocumentId
    page: int
    ordinal: int


@dataclass(frozen=True)
class BuildGraph:
    """Draw the people and things that a chunk names, and how they belong together."""

    kind: ClassVar[str] = "graph.build"
    document: DocumentId
    page: int
    ordinal: int


@dataclass(frozen=True)
class SealPhase:
    """The phase before is done: no more work will join this one."""

    kind: ClassVar[str] = "documents.seal"
    document: DocumentId
    phase: str


@dataclass(frozen=True)
class FinishDocument:
    """Every phase is done: this version takes the place of older ones."""

    kind: ClassVar[str] = "documents.finish"
    document: DocumentId


@dataclass(frozen=True)
class IngestText:
    """Keep a text that a program hands over as a whole: its chunks, its part of the graph, a summary."""

    kind: ClassVar[str] = "documents.ingest"
    urn: str
    title: str
    content: str
    client: str = ""
    project: str = ""
    type: str = "document"
    written_at: str | None = None  # ISO 8601, with a time zone
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    callback: str = ""  # an address that is told when it is done
    counted_from: str = "1970-01-01T00:00:00+00:00"  # the moment from which “tomorrow” is counted; ISO 8601
    names: list[str] = field(default_factory=list[str])  # who “we” are, for the hint whether it is assigned to us …
    addresses: list[str] = field(default_factory=list[str])  # … and our addresses
