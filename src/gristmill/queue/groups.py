"""Groups: tasks without a handler, whose status follows from their children."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from gristmill.db import Column, Tx, array, queries
from gristmill.errors import Refused, Unknown
from gristmill.ids import ScopeId, TaskId
from gristmill.queue.letters import to_json
from gristmill.queue.sender import find_sender

SQL = queries("gristmill.queue", "groups.sql")


class _Sealed(NamedTuple):
    """A group that was just sealed, and what is open in it."""

    status: str
    pending: int
    processing: int


class _Locked(NamedTuple):
    """A group that nobody else changes until the transaction ends."""

    id: TaskId
    sealed: bool


async def open_group(
    tx: Tx,
    *,
    parent: TaskId | None = None,
    owner: str | None = None,
    label: str | None = None,
    scope: ScopeId | None = None,
) -> TaskId:
    """A group: a task without a handler whose status follows from its children."""
    (group,) = await open_groups(tx, [label], parent=parent, owner=owner, scope=scope)
    return group


async def open_groups(
    tx: Tx,
    labels: Sequence[str | None],
    *,
    parent: TaskId | None = None,
    owner: str | None = None,
    scope: ScopeId | None = None,
) -> list[TaskId]:
    """Several at once, one for each label; without a scope they have that of the sender."""
    if parent is not None:
        await join_groups(tx, {parent: len(labels)})
    payloads = [to_json({"label": label}) if label else None for label in labels]
    own = await find_sender(tx) if scope is None else scope
    return await tx.values(SQL["open_groups"], Column[TaskId], parent=parent, owner=owner, scope=own, payloads=payloads)


async def seal(tx: Tx, group: TaskId) -> None:
    """No more children will come; a group that has nothing left open reaches its end here."""
    row = await tx.one(SQL["seal"], _Sealed, id=group)
    if row is None:
        await _check_group(tx, group)
        return
    if row.pending + row.processing == 0 and await tx.one(SQL["sealed_empty"], id=group):
        await conclude(tx, [group], was=row.status)


async def _check_group(tx: Tx, group: TaskId) -> None:
    if not await tx.all(SQL["lock_groups"], ids=[group]):
        raise Unknown(f"There is no group {group}.")


async def join_groups(tx: Tx, counts: Mapping[TaskId, int]) -> None:
    """Count so many new children in each group; refused for a group that is sealed or does not exist."""
    groups = {row.id: row.sealed for row in await tx.all(SQL["lock_groups"], _Locked, ids=list(counts))}
    for group in counts:
        if group not in groups:
            raise Unknown(f"There is no group {group}.")
        if groups[group]:
            raise Refused(f"Group {group} is sealed: no more children can be added to it.")
    await tx.one(SQL["joined"], ids=array(counts), counts=array(counts.values()))


async def conclude(tx: Tx, ids: Iterable[TaskId], *, was: str) -> None:
    """Tell groups, followers and series that these tasks have ended, and what their status was before."""
    await tx.one(SQL["conclude"], ids=array(ids), was=was)
