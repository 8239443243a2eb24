"""Filters of tasks as requests name them, and cursors of their lists."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

from fastapi import Query
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from gristmill.db import Tx
from gristmill.ids import ScopeId, TaskId
from gristmill.queue import Spot, TaskFilter, read_clock
from gristmill.scopes import find_scope
from gristmill.serving import Caller, Problem, read_cursor, write_cursor

BIGINT = 2**63 - 1
UNREADABLE = "The cursor cannot be read: use `next` of the portion before as it is."
NOWHERE = ScopeId(-1)  # a scope in which nothing is
Status = Literal["pending", "processing", "completed", "failed", "skipped", "cancelled"]
Name = Annotated[str, Field(max_length=500)]
Id = Annotated[int, Field(ge=0, le=BIGINT)]
Limit = Annotated[int, Query(ge=1, le=500, description="How many at most.")]


class TaskWish(BaseModel):
    """Which tasks are meant; what is left out excludes nothing."""

    model_config = ConfigDict(extra="forbid")

    queue: Name | None = None
    kind: Name | None = None
    status: Status | None = None
    cluster: Name | None = Field(default=None, description="The fingerprint of an error: dead letters alone.")
    since: AwareDatetime | None = Field(default=None, description="Sent at this time or later.")
    until: AwareDatetime | None = Field(default=None, description="Sent at this time or earlier.")
    older_than: Annotated[int, Field(ge=0, le=10**9)] | None = Field(default=None, description="In seconds.")
    document: Id | None = None
    owner: Name | None = None
    parent: Id | None = Field(default=None, description="The group that they are in.")
    text: Name | None = Field(default=None, description="Inside payload, result or error.")
    client: Annotated[str, Field(max_length=100)] | None = None
    project: Annotated[str, Field(max_length=100)] | None = None


async def read_wish(tx: Tx, caller: Caller, wish: TaskWish) -> TaskFilter:
    return TaskFilter(
        queue=wish.queue,
        kind=wish.kind,
        status=wish.status,
        fingerprint=wish.cluster,
        since=_check_time(wish.since),
        until=await _find_latest(tx, wish),
        owner=f"document:{wish.document}" if wish.document is not None else wish.owner,
        parent=TaskId(wish.parent) if wish.parent is not None else None,
        text=wish.text or None,
        scope=await choose_scope_id(tx, caller, wish.client, wish.project),
    )


async def choose_scope_id(tx: Tx, caller: Caller, client: str | None, project: str | None) -> ScopeId | None:
    """The scope that a request names; None if it names none."""
    if not client and not project:
        return None
    found = await find_scope(tx, caller.choose_scope(client, project))
    return NOWHERE if found is None else found


async def _find_latest(tx: Tx, wish: TaskWish) -> datetime | None:
    if wish.older_than is None:
        return _check_time(wish.until)
    oldest = await read_clock(tx) - timedelta(seconds=wish.older_than)
    return min(oldest, _check_time(wish.until) or oldest)


def _check_time(moment: datetime | None) -> datetime | None:
    if moment is not None and not 1970 < moment.year < 9000:
        raise Problem(422, "Choose a time between the years 1970 and 9000.")
    return moment


def write_spot(spot: Spot | None) -> str | None:
    if spot is None:
        return None
    return write_cursor(spot.id, "" if spot.died_at is None else spot.died_at.isoformat())


def read_spot(cursor: str | None) -> Spot | None:
    last = read_cursor(cursor, int, str)
    if last is None:
        return None
    try:
        died_at = datetime.fromisoformat(str(last[1])).astimezone(UTC) if last[1] else None
    except (ValueError, OverflowError):
        raise Problem(422, UNREADABLE) from None
    if not 0 <= int(last[0]) <= BIGINT:
        raise Problem(422, UNREADABLE)
    return Spot(TaskId(int(last[0])), _check_time(died_at))
