"""The letters that the qualifier sends itself."""

from dataclasses import dataclass
from typing import ClassVar

from gristmill.ids import WorkItemId


@dataclass(frozen=True)
class QualifyItem:
    """Decide about an item that was added, is due, or has waited long enough for the rest of its documents."""

    kind: ClassVar[str] = "qualify.item"
    item: WorkItemId


@dataclass(frozen=True)
class SweepItems:
    """Look for items that nobody would decide or run any more: unread documents, lost tasks."""

    kind: ClassVar[str] = "qualify.sweep"


@dataclass(frozen=True)
class DispatchDue:
    """Send the items whose time has nearly come on their way."""

    kind: ClassVar[str] = "qualify.due"


@dataclass(frozen=True)
class RunItem:
    """Execute an item that a person waits for."""

    kind: ClassVar[str] = "execution.run"
    item: WorkItemId


@dataclass(frozen=True)
class RunInBackground:
    """Execute an item when nobody asks for anything."""

    kind: ClassVar[str] = "background.run"
    item: WorkItemId


@dataclass(frozen=True)
class AskLlm:
    """Ask an LLM about an item before it is decided."""

    kind: ClassVar[str] = "qualify-llm.ask"
    item: WorkItemId


@dataclass(frozen=True)
class KeepAtom:
    """Put the defining text of an item into the knowledge, and link it with the item's node."""

    kind: ClassVar[str] = "qualify-atoms.keep"
    item: WorkItemId
    node_key: str
    node_type: str
    text: str


@dataclass(frozen=True)
class ReplayHistory:
    """Decide about past items again, and report what would differ; nothing is changed."""

    kind: ClassVar[str] = "qualify-replay.run"
    since: str  # ISO 8601, with a time zone
    client: str | None = None  # None: all clients
    project: str | None = None
    most: int = 100_000
