"""Items as programs see them over HTTP."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field

from gristmill.qualifier.model import (
    ItemEvent,
    ItemMemory,
    ItemMessage,
    ItemState,
    ItemType,
    Outcome,
    Urgency,
    WorkItem,
)
from gristmill.qualifier.status import LineStatus, count_lanes
from gristmill.qualifier.store import ItemResult, SourceDocument

Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
Text = Annotated[str, Field(min_length=1, max_length=200_000)]


class ShownItem(BaseModel):
    """An item."""

    id: int
    client: str
    project: str
    type: ItemType
    title: str
    state: ItemState
    outcome: Outcome | None
    foreground: bool
    position: int | None
    urgency: Urgency
    written_at: datetime
    created_at: datetime
    changed_at: datetime
    deadline: datetime | None
    scheduled_at: datetime | None
    cron: str | None
    zone: str
    document: int | None
    urn: str | None
    parent: int | None = Field(description="The item that it is a part of.")
    origin: int | None = Field(description="The item that it is a copy of.")
    merged_into: int | None = Field(description="The open item about the same thing.")
    task: int | None
    warning: str | None
    error: str | None
    question: str | None
    started_at: datetime | None
    dispatch_failures: int
    decision: int | None


class ShownEvent(BaseModel):
    """A change of an item: when, from which state to which, why, and by what or whom."""

    id: int
    at: datetime
    was: ItemState | None
    state: ItemState
    outcome: Outcome | None
    why: str
    by: str
    task: int | None


class ShownMessage(BaseModel):
    """Something that was said to an item, or by its executor."""

    id: int
    at: datetime
    kind: str
    by: str
    text: str
    document: int | None


class ShownMemory(BaseModel):
    """What the qualifier hands to whatever executes an item."""

    summary: str
    node_keys: Sequence[str]
    chunks: Sequence[int]
    data: Mapping[str, Any]
    routing: str
    reason: str
    source: str | None
    source_id: str | None


class ShownResult(BaseModel):
    """What an executor made of an item."""

    run: int
    at: datetime
    by: str
    summary: str
    reply: str | None
    asked: Sequence[Mapping[str, Any]]
    citations: Sequence[Mapping[str, Any]]


class ShownItemSource(BaseModel):
    """A document that an item was made of."""

    id: int
    urn: str
    name: str
    title: str | None
    type: str | None
    written_at: datetime | None


class ItemDetails(BaseModel):
    """An item with everything that belongs to it."""

    item: ShownItem
    text: str | None = Field(description="Its own words; none: its documents have them.")
    memory: ShownMemory | None
    result: ShownResult | None
    messages: Sequence[ShownMessage]
    documents: Sequence[ShownItemSource]
    parts: Sequence[ShownItem]
    copies: Sequence[ShownItem]
    merged: Sequence[ShownItem]


class ExecutorStatus(BaseModel):
    """The breaker of the executor."""

    name: str
    state: str = Field(description="closed, open or half-open.")
    failures: int
    error: str | None


class QueueStatus(BaseModel):
    """One of both queues: how many wait, and which are next."""

    waiting: int
    next: Sequence[ShownItem]


class ShownStatus(BaseModel):
    """Both queues, what runs, and whether the executor takes work."""

    foreground: QueueStatus
    background: QueueStatus
    running: Sequence[ShownItem]
    lanes: Mapping[str, int]
    executor_healthy: bool
    executor: ExecutorStatus
    last_request: datetime | None = Field(description="When a person last asked for something; for operators.")


def show_item(item: WorkItem) -> ShownItem:
    return ShownItem.model_validate(vars(item))


def show_event(event: ItemEvent) -> ShownEvent:
    return ShownEvent.model_validate(vars(event))


def show_message(message: ItemMessage) -> ShownMessage:
    return ShownMessage.model_validate(vars(message))


def show_memory(memory: ItemMemory) -> ShownMemory:
    return ShownMemory.model_validate(vars(memory))


def show_result(result: ItemResult) -> ShownResult:
    return ShownResult.model_validate(vars(result))


def show_source(source: SourceDocument) -> ShownItemSource:
    return ShownItemSource.model_validate(source._asdict())


def show_status(status: LineStatus, *, is_operator: bool) -> ShownStatus:
    """A client must not learn when another client asked for something."""
    health = status.health

    def show_queue(items: Sequence[WorkItem], *, foreground: bool) -> QueueStatus:
        waiting = status.count("ready_for_execution", foreground=foreground)
        return QueueStatus(waiting=waiting, next=[show_item(one) for one in items])

    return ShownStatus(
        foreground=show_queue(status.foreground, foreground=True),
        background=show_queue(status.background, foreground=False),
        running=[show_item(one) for one in status.running],
        lanes=count_lanes(status.counts),
        executor_healthy=health.is_healthy,
        executor=ExecutorStatus(name=health.name, state=health.state, failures=health.failures, error=health.error),
        last_request=status.last_request if is_operator else None,
    )
