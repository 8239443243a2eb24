"""What a document is: one version of one source, with the groups of its phases."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gristmill.ids import DocumentId, ScopeId, TaskId

OCR, SPLIT, VECTOR, GRAPH = "ocr", "split", "vector", "graph"
PHASES = (OCR, SPLIT, VECTOR, GRAPH)  # in this order: each works on what the one before has made


@dataclass(frozen=True)
class Document:
    """A row of `document`, with what the phases need of it."""

    id: DocumentId
    scope: ScopeId
    client: str
    urn: str
    version: int
    hash: bytes
    size: int
    container: DocumentId | None
    name: str
    type: str | None
    title: str | None
    meta: Mapping[str, Any]
    pages: int | None
    depth: int  # how many containers it lies in
    task: TaskId
    phases: Mapping[str, TaskId]

    @property
    def owner(self) -> str:
        return owner_of(self.id)


def owner_of(document: DocumentId) -> str:
    """Under which name its tasks live, as long as it does."""
    return f"document:{document}"
