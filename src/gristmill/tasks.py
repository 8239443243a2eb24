"""Every letter that one room sends another.

A letter that only its own room sends stands in that room's `letters.py`.
"""

from dataclasses import dataclass
from typing import ClassVar

from gristmill.ids import DocumentId, TaskId


@dataclass(frozen=True)
class SendCallback:  # documents -> web
    """Tell an address outside that a task is done, and what came of it."""

    kind: ClassVar[str] = "web.callback"
    url: str
    task: TaskId


@dataclass(frozen=True)
class DocumentRead:  # documents -> qualifier
    """All pages of a document are read, or as many as could be."""

    kind: ClassVar[str] = "qualify.document"
    document: DocumentId
