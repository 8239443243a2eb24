"""Settles answers: rows, letters, counters and completion commit together, fenced by the lease, or not at all."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, assert_never

from gristmill.db import Tx
from gristmill.ids import TaskId, WorkerId
from gristmill.queue.claim import Claim
from gristmill.queue.fingerprint import fingerprint
from gristmill.queue.letters import dumped
from gristmill.queue.outcome import Bury, Done, Outcome, Retry, Skip, Snooze, Stop
from gristmill.queue.send import send_many
from gristmill.queue.statements import SQL, array

Settled = tuple[Claim, Outcome]


async def settle(
    tx: Tx, worker: WorkerId, batch: Sequence[Settled], *, clears: frozenset[str] = frozenset(),
    retries_first: frozenset[str] = frozenset(),
) -> None:  # fmt: skip
    """Move every task of the batch out of `processing`. Raises LeaseLost's SQLSTATE, and writes nothing, if one is not ours.

    The fenced statements come first: whoever lost a lease learns it before anything else is written.
    """
    plain: list[Claim] = []
    closing: list[dict[str, Any]] = []
    again: list[dict[str, Any]] = []
    for claim, outcome in batch:
        match outcome:
            case Done(result=None) if claim.queue not in clears:
                plain.append(claim)
            case Done(result=result):
                closing.append(_closed(claim, "completed", result=result, clear=claim.queue in clears))
            case Skip(reason):
                closing.append(_closed(claim, "skipped", error=reason, clear=claim.queue in clears))
            case Stop(reason):
                closing.append(_closed(claim, "cancelled", error=reason))
            case Bury(error):
                closing.append(_closed(claim, "failed", error=error, fingerprint=fingerprint(error)))
            case Retry(wait, error):
                first = claim.queue in retries_first
                again.append(_again(claim, wait.total_seconds(), counts=True, first=first, error=error))
            case Snooze(wait):
                again.append(_again(claim, wait.total_seconds(), counts=False, first=False, error=None))
            case _:
                assert_never(outcome)
    if plain:
        ids, leases = array(claim.id for claim in plain), array(claim.lease for claim in plain)
        await tx.execute(SQL["complete"], worker=worker, ids=ids, leases=leases, n=len(plain))
    if closing:
        await tx.execute(SQL["close"], worker=worker, rows=dumped(closing), n=len(closing))
    if again:
        await tx.execute(SQL["again"], worker=worker, rows=dumped(again), n=len(again))
    await tx.execute(SQL["tally"], worker=worker, rows=dumped(tallied(batch)))
    await _write_and_send(tx, batch)


async def _write_and_send(tx: Tx, batch: Sequence[Settled]) -> None:
    letters = [letter for _, outcome in batch if isinstance(outcome, Done) for letter in outcome.then]
    for _, outcome in batch:
        if isinstance(outcome, Done | Skip) and outcome.write is not None:
            await outcome.write(tx)
    if letters:
        await send_many(tx, letters)


def _closed(
    claim: Claim, outcome: str, *, result: Any = None, error: str | None = None, fingerprint: str | None = None,
    clear: bool = False,
) -> dict[str, Any]:  # fmt: skip
    return {
        "id": claim.id, "lease": claim.lease, "outcome": outcome, "result": result, "error": error,
        "fingerprint": fingerprint, "clear": clear,
    }  # fmt: skip


def _again(claim: Claim, wait: float, *, counts: bool, first: bool, error: str | None) -> dict[str, Any]:
    return {
        "id": claim.id, "lease": claim.lease, "wait": f"{wait} s", "counts": counts, "first": first, "error": error,
        "fingerprint": fingerprint(error) if error else None,
    }  # fmt: skip


def tallied(batch: Iterable[Settled]) -> list[dict[str, Any]]:
    """What the batch adds to each queue's counters."""
    queues: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(COUNTED, 0))
    for claim, outcome in batch:
        counts = queues[claim.queue]
        counts[status_of(outcome)] += 1
        counts["prunable"] += claim.prunable and isinstance(outcome, Done | Skip | Stop)
    return [{"queue": queue, **counts} for queue, counts in queues.items()]


COUNTED = ("completed", "failed", "skipped", "cancelled", "retried", "snoozed", "prunable")


def status_of(outcome: Outcome) -> str:
    """The name of an outcome in counters and metrics."""
    match outcome:
        case Done():
            return "completed"
        case Skip():
            return "skipped"
        case Stop():
            return "cancelled"
        case Bury():
            return "failed"
        case Retry():
            return "retried"
        case Snooze():
            return "snoozed"
        case _:
            assert_never(outcome)


async def hand_back(tx: Tx, worker: WorkerId, claims: Sequence[Claim]) -> None:
    """Return tasks that were claimed but never started; no attempt is used."""
    ids, leases = array(claim.id for claim in claims), array(claim.lease for claim in claims)
    await tx.one(SQL["hand_back"], worker=worker, ids=ids, leases=leases)


async def announce(tx: Tx, worker: WorkerId, tasks: Iterable[TaskId]) -> None:
    """Say what is about to run, before it runs."""
    await tx.execute(SQL["announce"], worker=worker, tasks=array(tasks))
