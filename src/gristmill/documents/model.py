"""What a document is: one version of one source, with the groups of its phases."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gristmill.documents.phases.definition import write_letter
from gristmill.documents.urgency import Urgency, of_unit
from gristmill.ids import DocumentId, ScopeId, TaskId
from gristmill.queue import Envelope


@dataclass(frozen=True)
class PhaseGroup:
    """A phase of one document: the group of its tasks, and the kind of letter that joins it."""

    name: str
    task: TaskId
    kind: str


@dataclass(frozen=True)
class Document:
    """A row of `document`, with everything that the phases need."""

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
    given: Mapping[str, Any]  # type, title, time and metadata, as its source gave them
    pages: int | None
    depth: int  # how many containers it lies in
    task: TaskId
    phases: Mapping[str, PhaseGroup]  # in their order; none if it was written down as a whole
    foreground: bool  # as its opening was sent: a person waits for it …
    priority: int  # … and where its work stands in line

    @property
    def owner(self) -> str:
        return owner_of(self.id)

    @property
    def urgency(self) -> Urgency:
        return Urgency(self.foreground, self.priority)

    def unit(self, phase: str, work: int, page: int, ordinal: int | None = None) -> Envelope:
        """The letter about a page or a chunk to a phase; `work` is how much of the document is done when this is."""
        urgency = of_unit(self.urgency, work)
        group = self.phases[phase]
        return Envelope(
            write_letter(group.kind, self.id, page, ordinal),
            parent=group.task,
            owner=self.owner,
            foreground=urgency.foreground,
            scope=self.scope,
            priority=urgency.priority,
        )

    def unit_after(self, phase: str, page: int, ordinal: int | None = None) -> tuple[Envelope, ...]:
        """The letter about a unit to the phase behind this one; none behind the last."""
        names = list(self.phases)
        following = names[names.index(phase) + 1 :]
        return (self.unit(following[0], page + (ordinal or 0), page, ordinal),) if following else ()


def owner_of(document: DocumentId) -> str:
    """The owner that the tasks of a document have. They are removed together with the document."""
    return f"document:{document}"


def document_of(owner: str | None) -> DocumentId | None:
    """The document that an owner of tasks names; None if the owner is no document."""
    found = re.fullmatch(r"document:([0-9]{1,18})", owner or "")
    return DocumentId(int(found[1])) if found else None
