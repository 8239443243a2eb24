"""Brings closed tasks back to life: one, those of a phase, or all that failed in a group."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gristmill.db import Column, Tx, array, queries
from gristmill.errors import Refused, Unknown
from gristmill.ids import ScopeId, TaskId
from gristmill.queue.send import release_unique_keys

SQL = queries("gristmill.queue.operate", "revive.sql")
ENDED_BADLY = frozenset({"failed", "cancelled"})
ENDED = ENDED_BADLY | {"completed", "skipped"}
DONE = frozenset({"completed", "skipped"})


@dataclass(frozen=True)
class Candidate:
    """A task that somebody wants to retry; `emptied` if its payload was cleared."""

    id: TaskId
    outcome: str | None
    emptied: bool
    unique_key: str | None
    scope: ScopeId
    after: TaskId | None
    after_outcome: str | None


@dataclass(frozen=True)
class RetryRefusal:
    """Why a task stays as it is."""

    id: TaskId
    reason: str


@dataclass(frozen=True)
class Revived:
    """What is pending again, and what is not and why."""

    tasks: tuple[TaskId, ...] = ()
    refused: tuple[RetryRefusal, ...] = ()


class _Known(NamedTuple):
    """A task or group that somebody named; a group has no queue."""

    id: TaskId
    queue: str | None
    outcome: str | None


class _Holder(NamedTuple):
    """The task that holds a unique key of a scope."""

    unique_key: str
    scope: ScopeId
    id: TaskId


class _Prerequisite(NamedTuple):
    """A task that others come after."""

    id: TaskId
    outcome: str | None


async def retry(
    tx: Tx,
    ids: Iterable[TaskId],
    *,
    any_outcome: bool = False,
    kind: str | None = None,
    queue: str | None = None,
) -> Revived:
    """Make closed tasks pending again, with all their attempts before them; their groups reopen.

    A group stands for all its failed tasks at any depth (of one `kind` or `queue`, if given). Without
    `any_outcome` only what failed or was cancelled is taken.
    """
    wanted = list(dict.fromkeys(ids))
    tasks, refused = await _find_meant(tx, wanted, any_outcome, kind, queue)
    rows = await tx.all(SQL["lock_closed"], Candidate, ids=array(tasks))
    holders = await _holders(tx, rows)
    accepted: dict[TaskId, Candidate] = {}
    for row in rows:  # by id: what a task comes after is older than itself
        reason = refusal(
            row, any_outcome, holders.get((row.unique_key, row.scope)), with_prerequisite=row.after in accepted
        )
        if reason:
            refused.append(RetryRefusal(row.id, reason))
            continue
        accepted[row.id] = row
        if row.unique_key is not None:  # the first of a batch takes the key, the others find it taken
            holders[row.unique_key, row.scope] = row.id
    if accepted:
        await _reopen(tx, list(accepted.values()))
    return Revived(tuple(accepted), tuple(refused))


def refusal(row: Candidate, any_outcome: bool, holder: TaskId | None, *, with_prerequisite: bool) -> str | None:
    """Why this task cannot be retried, or None."""
    if row.outcome is None:
        return "it has not ended yet"
    if row.outcome not in (ENDED if any_outcome else ENDED_BADLY):
        return f"it is {row.outcome}, not failed"
    if row.emptied:
        return "its payload was cleared when it ended"
    if row.after_outcome == "cancelled" and not with_prerequisite:
        return f"it comes after task {row.after}, which was cancelled: retry that first"
    if holder is not None:
        return f"its unique key “{row.unique_key}” is held by task {holder} now"
    return None


async def _find_meant(
    tx: Tx, wanted: Sequence[TaskId], any_outcome: bool, kind: str | None, queue: str | None
) -> tuple[list[TaskId], list[RetryRefusal]]:
    """The tasks that are meant: themselves, and what is to be retried within groups."""
    known = {row.id: row for row in await tx.all(SQL["known"], _Known, ids=array(wanted))}
    tasks: list[TaskId] = []
    refused: list[RetryRefusal] = []
    for id_ in wanted:
        row = known.get(id_)
        if row is None:
            raise Unknown(f"There is no task {id_}.")
        if row.queue is not None:
            tasks.append(id_)
            continue
        outcomes = ENDED if any_outcome else ENDED_BADLY if row.outcome == "cancelled" else {"failed"}
        within = await tx.values(
            SQL["failed_within"], Column[TaskId], group=id_, outcomes=list(outcomes), kind=kind, queue=queue
        )
        tasks += within
        if not within:
            refused.append(RetryRefusal(id_, "nothing in it is to be retried"))
    return list(dict.fromkeys(tasks)), refused


async def _holders(tx: Tx, rows: Sequence[Candidate]) -> dict[tuple[str | None, ScopeId], TaskId]:
    keys = sorted({row.unique_key for row in rows if row.unique_key is not None})
    if not keys:
        return {}
    await release_unique_keys(tx, keys)
    held = await tx.all(SQL["other_holders"], _Holder, keys=keys, ids=array(row.id for row in rows))
    return {(row.unique_key, row.scope): row.id for row in held}


async def _reopen(tx: Tx, rows: Sequence[Candidate]) -> None:
    await tx.one(SQL["reopen"], ids=array(row.id for row in rows))
    # after the groups: one of them may be a prerequisite, and it has just reopened
    afters = sorted({row.after for row in rows if row.after is not None})
    found = await tx.all(SQL["lock_prerequisites"], _Prerequisite, ids=array(afters))
    outcomes = {row.id: row.outcome for row in found}
    free = [row.id for row in rows if _is_free(row, outcomes)]
    if free:
        await tx.one(SQL["admit"], ids=array(free))


def _is_free(row: Candidate, outcomes: Mapping[TaskId, str | None]) -> bool:
    if row.after is None or row.after not in outcomes:  # retention took it: it was done long ago
        return True
    if outcomes[row.after] == "cancelled":
        raise Refused(f"Task {row.id} comes after task {row.after}, which has just been cancelled.")
    return outcomes[row.after] in DONE
