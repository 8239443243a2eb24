"""Settles answers: rows, letters, counters and completion commit together, fenced by the lease, or not at all."""

from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, assert_never

from psycopg import DatabaseError

from gristmill.db import Tx, array, queries
from gristmill.errors import LeaseLost
from gristmill.ids import ScopeId, TaskId, WorkerId
from gristmill.queue.claim import Claim
from gristmill.queue.fingerprint import fingerprint
from gristmill.queue.groups import seal
from gristmill.queue.letters import Envelope, Letter, to_json
from gristmill.queue.outcome import BARE, Bury, Done, JointWrite, Outcome, Retry, Skip, Snooze, Stop, Write
from gristmill.queue.send import MAX_PAYLOAD, send_many
from gristmill.queue.sender import sending_for
from gristmill.scopes import GLOBAL_ID

SQL = queries("gristmill.queue", "settle.sql")
LEASE_LOST = "GM001"  # what fence() raises

Settled = tuple[Claim, Outcome]


def is_plain(batch: Sequence[Settled], clears: frozenset[str]) -> bool:
    """Whether every answer is a bare Done, which one statement settles without a transaction around it."""
    if clears:
        return all(outcome is BARE and claim.queue not in clears for claim, outcome in batch)
    return all([outcome is BARE for _, outcome in batch])


async def run_fenced(statement: Awaitable[Any]) -> None:
    """Run a statement that calls fence(): LeaseLost if one of its tasks is not ours any more."""
    try:
        await statement
    except DatabaseError as error:
        if error.sqlstate == LEASE_LOST:
            raise LeaseLost(str(error).strip()) from error
        raise


def has_write(outcome: Outcome) -> bool:
    """Whether it brings a write, letters or seals of its own, which may fail or never end."""
    if isinstance(outcome, Done) and outcome.seals:
        return True
    return isinstance(outcome, Done | Skip) and (outcome.write is not None or bool(outcome.then))


async def settle(
    tx: Tx,
    worker: WorkerId,
    batch: Sequence[Settled],
    *,
    clears: frozenset[str] = frozenset(),
    retries_first: frozenset[str] = frozenset(),
    max_payload: int = MAX_PAYLOAD,
) -> None:
    """Move every task of the batch out of `processing`; if one of them is not ours any more, fail and write nothing.

    The fenced statements come first: whoever lost a lease learns it before anything else is written.
    """
    plain, closing, again, rest = _sort_by_statement(batch, clears, retries_first)
    letters = [letter for claim, outcome in batch for letter in _letters_of(claim, outcome)]
    seals = sorted({group for _, outcome in batch if isinstance(outcome, Done) for group in outcome.seals})
    tied = any(isinstance(one, Envelope) and (one.parent, one.after) != (None, None) for one in letters)
    if seals or tied or bool(plain) + bool(closing) + bool(again) > 1:
        await _lock_families(tx, worker, [claim.id for claim, _ in batch], letters, seals)
    if plain:
        await tx.execute(SQL["complete"], **completion_params(worker, plain))
    if closing:
        await tx.execute(SQL["close"], worker=worker, rows=to_json(closing), n=len(closing), stopped=Stop().reason)
    if again:
        await tx.execute(SQL["again"], worker=worker, rows=to_json(again), n=len(again))
    if rest:
        await tx.execute(SQL["tally"], worker=worker, rows=to_json(count_outcomes(rest)))
    await run_fenced(tx.flush())
    for scopes, write in _gather_writes(batch):
        with sending_for(scopes):
            await write(tx)
    if letters:
        await send_many(tx, letters, max_payload=max_payload)
    for group in seals:
        await seal(tx, group)


def _gather_writes(batch: Sequence[Settled]) -> list[tuple[set[ScopeId], Write]]:
    """The writes of all answers with the scopes that they work for; those that are made together are one."""
    gathered: list[tuple[set[ScopeId], Write]] = []
    joint: dict[Any, tuple[set[ScopeId], list[Any]]] = {}
    for claim, outcome in batch:
        if not isinstance(outcome, Done | Skip) or outcome.write is None:
            continue
        if not isinstance(outcome.write, JointWrite):
            gathered.append(({claim.scope}, outcome.write))
            continue
        run = outcome.write.run
        if run not in joint:
            joint[run] = set(), []
            gathered.append((joint[run][0], partial(_write_together, run=run, parts=joint[run][1])))
        joint[run][0].add(claim.scope)
        joint[run][1].append(outcome.write.part)
    return gathered


async def _write_together(tx: Tx, *, run: Callable[[Tx, Sequence[Any]], Awaitable[None]], parts: Sequence[Any]) -> None:
    await run(tx, parts)


def _letters_of(claim: Claim, outcome: Outcome) -> list[Letter | Envelope]:
    """The letters that follow from an answer; they belong to whom its task belongs, unless they say another."""
    if not isinstance(outcome, Done | Skip):
        return []
    if claim.scope == GLOBAL_ID:  # which is what a letter without a scope has
        return list(outcome.then)
    return [_give_scope(letter, claim.scope) for letter in outcome.then]


def _give_scope(letter: Letter | Envelope, scope: ScopeId) -> Envelope:
    if not isinstance(letter, Envelope):
        return Envelope(letter, scope=scope)
    return letter if letter.scope is not None else replace(letter, scope=scope)


def _sort_by_statement(
    batch: Sequence[Settled], clears: frozenset[str], retries_first: frozenset[str]
) -> tuple[list[Claim], list[dict[str, Any]], list[dict[str, Any]], list[Settled]]:
    """By the statement that settles them (`complete`, `close`, `again`), in the order of their ids, and for `tally`."""
    plain: list[Claim] = []
    closing: list[dict[str, Any]] = []
    again: list[dict[str, Any]] = []
    rest: list[Settled] = []
    for claim, outcome in sorted(batch, key=lambda settled: settled[0].id):
        clear = claim.queue in clears
        match outcome:
            case Done(result=None) if not clear:
                plain.append(claim)
                continue
            case Done(result=result):
                closing.append(_closing_row(claim, "completed", result=result, clear=clear))
            case Skip(reason):
                closing.append(_closing_row(claim, "skipped", error=reason, clear=clear))
            case Stop(reason):
                closing.append(_closing_row(claim, "cancelled", error=reason))
            case Bury(error):
                closing.append(_closing_row(claim, "failed", error=error, fingerprint=fingerprint(error)))
            case Retry(wait, error):
                first = claim.queue in retries_first
                again.append(_return_row(claim, wait.total_seconds(), counts=True, first=first, error=error))
            case Snooze(wait, reason):
                again.append(_return_row(claim, wait.total_seconds(), counts=False, first=False, error=reason))
            case _:
                assert_never(outcome)
        rest.append((claim, outcome))
    return plain, closing, again, rest


async def _lock_families(
    tx: Tx, worker: WorkerId, ids: Sequence[TaskId], letters: Sequence[Letter | Envelope], seals: Sequence[TaskId]
) -> None:
    """Take all locks first: each statement locks tasks, then groups, so two of them in a row could deadlock."""
    outside = [letter for letter in letters if isinstance(letter, Envelope)]
    joined = {one.parent for one in outside if one.parent is not None}.union(seals)
    awaited = {one.after for one in outside if one.after is not None}
    await tx.all(SQL["lock_families"], worker=worker, ids=array(ids), tasks=array(awaited), groups=array(joined))


def completion_params(worker: WorkerId, claims: Sequence[Claim]) -> dict[str, Any]:
    """The parameters of `complete`."""
    completed = Counter([(claim.queue, claim.scope) for claim in claims])
    prunable = Counter([(claim.queue, claim.scope) for claim in claims if claim.prunable])
    return {
        "worker": worker,
        "n": len(claims),
        "ids": array([claim.id for claim in claims]),
        "leases": array([claim.lease for claim in claims]),
        "queues": [queue for queue, _ in completed],
        "scopes": array(scope for _, scope in completed),
        "completed": array(completed.values()),
        "prunable": array(prunable[which] for which in completed),
    }


def _closing_row(
    claim: Claim,
    outcome: str,
    *,
    result: Any = None,
    error: str | None = None,
    fingerprint: str | None = None,
    clear: bool = False,
) -> dict[str, Any]:
    return {
        "id": claim.id,
        "lease": claim.lease,
        "outcome": outcome,
        "result": result,
        "error": error,
        "fingerprint": fingerprint,
        "clear": clear,
    }


def _return_row(claim: Claim, wait: float, *, counts: bool, first: bool, error: str | None) -> dict[str, Any]:
    return {
        "id": claim.id,
        "lease": claim.lease,
        "wait": f"{wait} s",
        "counts": counts,
        "first": first,
        "error": error,
        "fingerprint": fingerprint(error) if error and counts else None,
    }


def count_outcomes(batch: Iterable[Settled]) -> list[dict[str, Any]]:
    """What the batch adds to the counters of each queue and scope."""
    queues: dict[tuple[str, ScopeId], dict[str, int]] = defaultdict(lambda: dict.fromkeys(COUNTED, 0))
    for claim, outcome in batch:
        counts = queues[claim.queue, claim.scope]
        counts[status_of(type(outcome))] += 1
        counts["prunable"] += claim.prunable and isinstance(outcome, Done | Skip | Stop)
    return [{"queue": queue, "scope": scope, **counts} for (queue, scope), counts in queues.items()]


COUNTED = ("completed", "failed", "skipped", "cancelled", "retried", "snoozed", "prunable")


STATUS: dict[type[Outcome], str] = {
    Done: "completed",
    Skip: "skipped",
    Stop: "cancelled",
    Bury: "failed",
    Retry: "retried",
    Snooze: "snoozed",
}


@cache
def status_of(outcome: type[Outcome]) -> str:
    """The name of an outcome in counters and metrics, by its class or the one it was made from."""
    return next(status for kind, status in STATUS.items() if issubclass(outcome, kind))
