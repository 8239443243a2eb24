"""What an executor is: whatever works on an item, and may ask a person in between."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gristmill.ids import DocumentId
from gristmill.qualifier.model import ItemMemory, ItemMessage, WorkItem


@dataclass(frozen=True)
class ResultCitation:
    """Where words stand: on a page of a document, from one character to another."""

    document: DocumentId
    page: int
    start: int
    stop: int
    words: str


@dataclass(frozen=True)
class AskedFor:
    """Something that an item asks for, and where it does."""

    words: str
    citation: ResultCitation | None = None  # None: it stands in the title, or in the item's own words


@dataclass(frozen=True)
class ExecutorResult:
    """What came of an item."""

    summary: str
    reply: str | None = None  # a draft
    asked: Sequence[AskedFor] = ()
    citations: Sequence[ResultCitation] = ()
    by: str = "template"  # what wrote it: the template, or a model


@dataclass(frozen=True)
class ItemQuestion:
    """A person must say something before the item can go on; the checkpoint is kept."""

    text: str


@dataclass
class Checkpoint:
    """How far a run is. `save` keeps it: a run that was interrupted, or whose worker died, goes on from there."""

    done: int = 0  # steps
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    keep: Callable[["Checkpoint"], Awaitable[None]] | None = None

    async def save(self, done: int, data: Mapping[str, Any]) -> None:
        self.done, self.data = done, data
        if self.keep is not None:
            await self.keep(self)


class Executor(Protocol):
    """Works on items. It may be cancelled at any await: what it wants to keep stands in its checkpoint.

    Errors: Transient if the world is busy (the item is tried again, for ever), anything else ends the item in `error`
    after some attempts.
    """

    @property
    def name(self) -> str:
        """By which its health is known."""
        ...

    async def check(self) -> None:
        """Whether it can take work now; Transient if not."""
        ...

    async def run(
        self, item: WorkItem, memory: ItemMemory | None, messages: Sequence[ItemMessage], checkpoint: Checkpoint
    ) -> ExecutorResult | ItemQuestion:
        """Work on an item, from its checkpoint on."""
        ...
