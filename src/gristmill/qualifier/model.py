"""What an item is, which states it has, and what a decision asks of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from typing import Any, Literal, get_args

from gristmill.ids import DecisionId, DocumentId, ScopeId, TaskId, WorkItemId

ItemType = Literal[
    "email", "wiki", "bugtracker", "git", "user_input", "user_task", "scheduled", "link", "meeting", "document"
]
ItemState = Literal[
    "new",
    "ready_for_qualification",
    "qualifying",
    "done",
    "scheduled",
    "ready_for_execution",
    "dispatched",
    "running",
    "waiting_for_user",
    "waiting_for_children",
    "completed",
    "error",
]
Outcome = Literal["info_only", "handled", "consolidated", "scheduled", "cancelled"]
Urgency = Literal["low", "normal", "high", "critical"]
RouteTo = Literal["info_only", "handled", "now", "later", "consolidate", "decompose"]

TYPES: tuple[ItemType, ...] = get_args(ItemType)
STATES: tuple[ItemState, ...] = get_args(ItemState)
URGENCIES: tuple[Urgency, ...] = get_args(Urgency)
CLOSED: tuple[ItemState, ...] = ("done", "completed")
OPEN: tuple[ItemState, ...] = tuple(state for state in STATES if state not in CLOSED)
UNDECIDED: tuple[ItemState, ...] = ("new", "ready_for_qualification", "qualifying")
AT_WORK: tuple[ItemState, ...] = ("ready_for_execution", "dispatched", "running", "waiting_for_user")
SUSPECTED = "It may be hostile"  # how the warning about a text begins that wants to lead astray
END_OF_DAY = time(23, 59)  # as the rules read a day without a time
FEWEST_PARTS, MOST_PARTS = 2, 6  # children that one item is decomposed into


SAME_ID = "It has the same Message-ID as another mail that came before it, and says something else: it may be forged."


@dataclass(frozen=True)
class WorkItem:
    """A row of `item`, with the names of its scope."""

    id: WorkItemId
    scope: ScopeId
    client: str
    project: str
    type: ItemType
    urn: str | None
    document: DocumentId | None
    message: str | None  # of a mail: its message id, by which its thread is found
    title: str
    text: str | None  # its own words; None: its documents have them
    note: Mapping[str, Any]  # subject, sender, recipients, headers, fields: what is known beside the text
    state: ItemState
    outcome: Outcome | None
    foreground: bool
    position: int | None
    urgency: Urgency
    written_at: datetime  # its own date: relative dates are counted from here
    created_at: datetime
    changed_at: datetime
    deadline: datetime | None
    scheduled_at: datetime | None
    cron: str | None
    zone: str
    parent: WorkItemId | None
    origin: WorkItemId | None  # the item that it is a copy of
    merged_into: WorkItemId | None
    added_by: str | None
    warning: str | None
    error: str | None
    question: str | None
    task: TaskId | None
    decision: DecisionId | None
    step: int  # one more with each change of its state
    run: int
    started_at: datetime | None
    heard: int  # the last message that the last run knew
    dispatch_failures: int

    @property
    def is_open(self) -> bool:
        return self.state not in CLOSED

    @property
    def is_double(self) -> bool:
        """Whether it is a mail with the Message-ID of another one, which may be forged."""
        return "same_id_as" in self.note

    @property
    def is_whole(self) -> bool:
        """Whether all of it could be read: other warnings are about what it says."""
        return self.warning is None or self.warning == SAME_ID or self.warning.startswith(SUSPECTED)


@dataclass(frozen=True)
class TextPart:
    """Where the text of one page stands in the text of an item, so that words can be cited."""

    document: DocumentId
    name: str
    page: int
    start: int  # characters of the item's text …
    stop: int
    offset: int  # … and where they begin in the text of the page


@dataclass(frozen=True)
class ItemText:
    """The words of an item: the subject, the body, then each attachment after a line with its name."""

    item: WorkItem
    text: str
    new: Sequence[tuple[int, int]]  # the spans that are new, and not quoted from an older mail
    parts: Sequence[TextPart]
    file_names: Sequence[tuple[int, int]] = ()  # the spans that are names of files


@dataclass(frozen=True)
class ChildItem:
    """A part of an item that is decomposed: a piece of work of its own."""

    title: str
    text: str
    deadline: datetime | None = None  # its own; None: that of the whole


@dataclass(frozen=True)
class Route:
    """Where a decision sends an item."""

    to: RouteTo
    urgency: Urgency = "normal"
    deadline: datetime | None = None
    scheduled_at: datetime | None = None  # of `later`: when its copy is due; of `consolidate`: the other item, or now
    into: WorkItemId | None = None  # of `consolidate`
    children: Sequence[ChildItem] = ()  # of `decompose`: two to six


@dataclass(frozen=True)
class Identifier:
    """A number that an item is about."""

    kind: str  # invoice, order, issue …
    value: str


@dataclass(frozen=True)
class ItemMessage:
    """Something that was said to an item, or by its executor."""

    id: int
    at: datetime
    kind: Literal["user", "mail", "item", "question", "answer"]
    by: str
    text: str
    document: DocumentId | None = None


@dataclass(frozen=True)
class ItemEvent:
    """A change of an item's state."""

    id: int
    at: datetime
    was: ItemState | None
    state: ItemState
    outcome: Outcome | None
    why: str
    by: str
    task: TaskId | None

    @property
    def title(self) -> str:
        """The state that it brought, in words: opened again, ready for execution; empty if the state stayed."""
        if self.was == self.state:
            return ""
        words = [self.state.replace("_", " ")]
        if self.is_reopening:
            words.insert(0, "opened again")
        return ", ".join(words) + (f": {self.outcome.replace('_', ' ')}" if self.outcome else "")

    @property
    def is_reopening(self) -> bool:
        """Whether an item that had ended is worked on again."""
        return self.was in CLOSED and self.state not in CLOSED


@dataclass(frozen=True)
class ItemMemory:
    """What the qualifier hands to whatever executes an item."""

    summary: str
    node_keys: Sequence[str] = ()
    chunks: Sequence[int] = ()
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    routing: str = ""  # the decision in one word: info_only, now …
    reason: str = ""
    source: str | None = None  # the type of its source: email, git …
    source_id: str | None = None  # and its id there: the URN
