"""What a connector is: a few functions that talk to one place outside, and the things that they give back."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from gristmill.ids import ItemId, ScopeId, SourceId
from gristmill.sources.link import FoundLink

if TYPE_CHECKING:  # the child processes that describe items import this file and need no settings
    from gristmill.settings import Slice

ItemType = Literal["email", "wiki", "bugtracker", "git", "user_input", "user_task", "scheduled", "link", "meeting"]
State = Literal["NEW", "INDEXING", "INDEXED", "FAILED", "SET_ASIDE", "DELETED"]
Checkpoint = Mapping[str, Any]  # JSON that only its connector reads; empty at the beginning
LONGEST_ID = 1_000  # characters of the id that an item has at its source


@dataclass(frozen=True)
class RawItem:
    """An item as it was fetched; nobody has looked into its bytes yet."""

    external: str
    content: bytes
    mark: str | None = None
    note: Mapping[str, Any] = field(default_factory=dict[str, Any])
    refusal: str = ""  # why its bytes could not be had: it is set aside with this sentence


@dataclass(frozen=True)
class Listed:
    """An id that a source has; the mark changes with the item, if the source has such a thing."""

    external: str
    mark: str | None = None


@dataclass(frozen=True)
class Batch:
    """Some items, and the checkpoint that is right once they are kept: both are written together.

    `moved` are items that got another id at their source, by their old one.
    """

    checkpoint: Checkpoint
    items: Sequence[RawItem] = ()
    moved: Mapping[str, str] = field(default_factory=dict[str, str])


class Known(Protocol):
    """The items that are here already: connectors ask for them, and fetch none of them again."""

    async def find_unlike(self, listed: Sequence[Listed]) -> list[Listed]:
        """The items, of these, that are new here, or have another mark here."""
        ...

    async def find_externals(self, urns: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """The ids under which this source has had these URNs."""
        ...

    def read_waiting(self) -> AsyncIterator[tuple[str, bytes]]:
        """The ids of the items whose URN nobody knows yet, since they wait for the indexer, and how they begin."""
        ...


class Connector(Protocol):
    """An open connection to a source.

    Everything it raises is Transient (try again), Overloaded (… and it said when) or Permanent (a person must mend it).
    It keeps nothing itself: a poll that is killed between two batches goes on from the checkpoint of the last one.
    """

    async def check(self) -> str:
        """One sentence about what is there."""
        ...

    def changes(self, checkpoint: Checkpoint) -> AsyncIterator[Batch]:
        """What is new or changed since a checkpoint, overlapping rather than missing anything."""
        ...

    def list_ids(self) -> AsyncIterator[Sequence[Listed]]:
        """All ids that are there now, in portions."""
        ...

    def fetch(self, ids: Sequence[str]) -> AsyncIterator[RawItem]:
        """The items with these ids; an item that does not come is gone there."""
        ...


@dataclass(frozen=True)
class ConnectorContext:
    """Everything that a connector works with, beside its options."""

    source: SourceId
    name: str
    known: Known
    folder: Path  # a place of its own on this machine, which it may find empty
    max_bytes: int  # of one item


@dataclass(frozen=True)
class Fetched:
    """An item as the indexer gets it."""

    source: str  # the name
    external: str
    note: Mapping[str, Any]
    content: bytes


@dataclass(frozen=True)
class Description:
    """What the indexer finds in an item: the document that it becomes, and how it belongs to others."""

    urn: str
    type: ItemType
    name: str
    text: str  # where links are looked for
    title: str | None = None
    reading: str | None = None  # how its document is read; None: its content tells
    content: bytes | None = None  # of its document; None: the bytes of the item as they are
    written_at: datetime | None = None
    updated_at: datetime | None = None  # of two items with one URN the newer one is shown, unless they are mails
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    digest: bytes | None = None  # two mails with one URN and one digest are the same mail twice
    messages: Sequence[str] = ()  # the ids of a mail and of those that it answers
    links: Sequence[FoundLink] = ()  # in its text
    sent: bool = False


Open = Callable[[Any, ConnectorContext], AbstractAsyncContextManager[Connector]]
Describe = Callable[[Fetched], Description]
Watch = Callable[[Any], AbstractAsyncContextManager[Callable[[], Awaitable[bool]]]]  # waits; whether something is new


@dataclass(frozen=True)
class Kind:
    """A kind of source: its options, how it is opened, and how its items are read."""

    name: str
    title: str  # one sentence
    options: "type[Slice]"
    open: Open
    describe: Describe
    every: timedelta = timedelta(minutes=5)
    listing_every: timedelta = timedelta(days=1)
    backoff: Sequence[timedelta] = tuple(timedelta(minutes=n) for n in (1, 5, 15, 30, 60))  # then from the start
    watch: Watch | None = None  # how it tells of changes by itself
    check_folder: Callable[[Path], None] | None = None  # Permanent if a folder of this machine cannot be such a source


@dataclass(frozen=True)
class Source:
    """A row of `source`."""

    id: SourceId
    scope: ScopeId
    client: str
    project: str
    name: str
    kind: str
    options: Mapping[str, Any]
    declared: bool
    declared_by: str | None
    paused: bool
    every: timedelta
    listing_every: timedelta
    checkpoint: Checkpoint | None
    step: int
    created_at: datetime
    expected_from: datetime
    polled_at: datetime | None
    succeeded_at: datetime | None
    failures: int
    error: str | None
    waits_until: datetime | None
    waits_for: str | None
    listed_at: datetime | None
    listing: Mapping[str, Any] | None
    listing_failures: int
    listing_error: str | None
    listing_succeeded_at: datetime | None
    listing_agreed_at: datetime | None
    awaits_agreement: bool
    now: datetime  # when it was asked for


@dataclass(frozen=True)
class SourceItem:
    """A row of `source_item`, as the indexer works on it."""

    id: ItemId
    source: SourceId
    source_name: str
    kind: str
    scope: ScopeId
    client: str
    project: str
    external: str
    note: Mapping[str, Any]
    version: int
    state: str
    size: int
    urn: str | None
