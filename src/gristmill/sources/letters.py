"""The letters of sources: poll, list, watch; index and remove an item."""

from dataclasses import dataclass
from typing import ClassVar

from gristmill.ids import ItemId, SourceId


@dataclass(frozen=True)
class SourceDue:
    """The schedule of a source says that it is time; a poll that still runs or waits is not doubled."""

    kind: ClassVar[str] = "sources.due"
    source: SourceId
    listing: bool = False  # compare all ids, not only what has changed


@dataclass(frozen=True)
class PollSource:
    """Fetch what has changed at a source since its checkpoint."""

    kind: ClassVar[str] = "sources.poll"
    source: SourceId


@dataclass(frozen=True)
class ListSource:
    """Compare all ids there with those here: fetch what is missing, remove what is gone."""

    kind: ClassVar[str] = "sources.list"
    source: SourceId
    agreed: bool = False  # a person has agreed that most of it is gone: in old letters; the source keeps it now


@dataclass(frozen=True)
class WatchSources:
    """Make sure that a task listens to the sources that tell of changes."""

    kind: ClassVar[str] = "sources.watch"


@dataclass(frozen=True)
class ListenToSources:
    """Listen to the sources that tell of changes themselves, and poll a source as soon as it tells of one."""

    kind: ClassVar[str] = "sources.listen"


@dataclass(frozen=True)
class IndexItem:
    """Hand an item on as a document."""

    kind: ClassVar[str] = "index.item"
    item: ItemId
    version: int


@dataclass(frozen=True)
class RemoveItem:
    """It is gone at its source: remove what was made of it."""

    kind: ClassVar[str] = "index.remove"
    item: ItemId
    version: int
