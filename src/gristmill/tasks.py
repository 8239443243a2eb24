"""Every letter that one room sends another."""

from dataclasses import dataclass
from typing import ClassVar

from gristmill.ids import DocumentId, ScopeId


@dataclass(frozen=True)
class OpenDocument:
    """Look at a document: what it is, how many pages it has, what lies in it."""

    kind: ClassVar[str] = "documents.open"
    document: DocumentId
    offset: int = 0  # for containers: how many of their parts are known already …
    unpacked: int = 0  # … how many bytes those have …
    missing: int = 0  # … and how many of them could not be had
    refusal: str = ""  # of a part that could not be had: why


@dataclass(frozen=True)
class ReadPage:
    """Turn one page into Markdown."""

    kind: ClassVar[str] = "ocr.read"
    document: DocumentId
    page: int


@dataclass(frozen=True)
class SplitPage:
    """Divide the Markdown of one page into chunks."""

    kind: ClassVar[str] = "vector.split"  # a step between the phases; whoever runs the second one runs it, too
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
    """Draw who and what a chunk names, and how they belong together."""

    kind: ClassVar[str] = "graph.build"
    document: DocumentId
    page: int
    ordinal: int


@dataclass(frozen=True)
class SealPhase:
    """All of the phase before is done: no more work will join this one."""

    kind: ClassVar[str] = "documents.seal"
    document: DocumentId
    phase: str


@dataclass(frozen=True)
class FinishDocument:
    """Every phase is done: this version takes the place of older ones."""

    kind: ClassVar[str] = "documents.finish"
    document: DocumentId


@dataclass(frozen=True)
class FoldTerms:
    """Gather the terms of fresh chunks into segments, and drop those of chunks that are gone."""

    kind: ClassVar[str] = "knowledge.fold"
    scope: ScopeId


@dataclass(frozen=True)
class TidyTerms:
    """Have the terms folded wherever something was left to do."""

    kind: ClassVar[str] = "knowledge.tidy"


@dataclass(frozen=True)
class FillVectors:
    """Let every chunk have a vector of this model, and of no other, a portion at a time."""

    kind: ClassVar[str] = "knowledge.fill"
    model: str
    after: int = 0  # up to this chunk it was seen to
