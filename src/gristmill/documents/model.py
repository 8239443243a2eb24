"""What a document is: one version of one source, with the groups of its phases."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gristmill.documents.urgency import Urgency, of_unit
from gristmill.ids import DocumentId, ScopeId, TaskId
from gristmill.queue import Envelope, Letter

OCR, SPLIT, VECTOR, GRAPH = "ocr", "split", "vector", "graph"
PHASES = (OCR, SPLIT, VECTOR, GRAPH)  # in this order: each works on what the one before has made


@dataclass(frozen=True)
class Document:
    """A row of `document`, with what the phases need of it."""

    id: DocumentId
    scope: ScopeId
    client: str
    project: str
    urn: str
    version: int
    hash: bytes
    size: int
    container: DocumentId | None
    name: str
    type: str | None
    title: str | None
    meta: Mapping[str, Any]
    given: Mapping[str, Any]  # what its source says of it
    pages: int | None
    depth: int  # how many containers it lies in
    task: TaskId
    phases: Mapping[str, TaskId]
    foreground: bool  # as its opening was sent: a person waits for it …
    priority: int  # … and where its work stands in line

    @property
    def owner(self) -> str:
        return owner_of(self.id)

    @property
    def urgency(self) -> Urgency:
        return Urgency(self.foreground, self.priority)

    def unit(self, phase: str, letter: Letter, work: int) -> Envelope:
        """A letter about a part of it, to a phase; `work` is how much of the document is done when this is."""
        urgency = of_unit(self.urgency, work)
        return Envelope(
            letter,
            parent=self.phases[phase],
            owner=self.owner,
            foreground=urgency.foreground,
            scope=self.scope,
            priority=urgency.priority,
        )


def owner_of(document: DocumentId) -> str:
    """Under which name its tasks live, as long as it does."""
    return f"document:{document}"


def document_of(owner: str | None) -> DocumentId | None:
    """Which document this is the owner of, if it is one's."""
    found = re.fullmatch(r"document:([0-9]{1,18})", owner or "")
    return DocumentId(int(found[1])) if found else None
