"""Takes back the tasks of dead workers: what was not started goes back unharmed, the culprit is found out."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gristmill.db import Column, Tx, queries
from gristmill.ids import TaskId, WorkerId
from gristmill.queue import journal
from gristmill.queue.fingerprint import fingerprint
from gristmill.queue.groups import conclude
from gristmill.queue.letters import to_json
from gristmill.queue.limiter import release_holds

SQL = queries("gristmill.queue.upkeep", "rescuer.sql")

Verdict = Literal["back", "suspect", "bury", "cancel"]
Read = Callable[[str], frozenset[TaskId] | None]


@dataclass(frozen=True)
class LostWorker:
    """A worker that a rescue has found dead."""

    id: WorkerId
    name: str
    journal: str
    process: str


@dataclass(frozen=True)
class Orphan:
    """A task that is leased to a worker which does not live."""

    id: TaskId
    worker: WorkerId
    name: str
    attempts: int
    cancel: bool
    suspect: bool
    max_attempts: int


Judged = tuple[Orphan, bool, Verdict]  # the task, whether it had begun, what becomes of it


@dataclass(frozen=True)
class Rescued:
    """The tasks taken back from one worker; `dead` is false if an earlier rescue had declared it lost already."""

    worker: WorkerId
    name: str
    dead: bool
    journal: str = field(default="", compare=False)
    back: tuple[TaskId, ...] = ()
    suspects: tuple[TaskId, ...] = ()
    buried: tuple[TaskId, ...] = ()
    cancelled: tuple[TaskId, ...] = ()


DOUBT = 3  # more attempts if the worker only fell silent: its machine may have slept, or its network failed


def verdict(
    *, started: bool, alone: bool, suspect: bool, seen_dead: bool, cancel: bool, attempts: int, max_attempts: int
) -> Verdict:
    """What becomes of a task whose worker died.

    Only a suspect that was run alone, and whose worker died again, is known to be the culprit. Where several ran, or
    where nobody suspected it yet, it may be innocent, however often it was tried.
    """
    if cancel:
        return "cancel"
    if not started:
        return "back"
    if alone and suspect and attempts >= max_attempts + (0 if seen_dead else DOUBT):
        return "bury"
    return "suspect"


async def list_processes(tx: Tx) -> list[str]:
    """The processes of all workers that are believed to live: what `find_gone_processes` wants to know."""
    return await tx.values(SQL["processes"], str)


async def rescue(tx: Tx, *, gone: Sequence[str] = (), read: Read = journal.read_begun) -> list[Rescued]:
    """Take back every lease whose worker is silent for too long, or whose process is in `gone`.

    Any number of rescuers may do this at the same time; each dead worker is rescued by one of them. Its journal says
    which tasks it had begun; if the journal cannot be read, every task that it held counts as begun.
    """
    lost = await tx.all(SQL["lose_workers"], LostWorker, gone=list(gone))
    dead = {worker.id: worker for worker in lost}
    begun = {worker: read(row.journal) for worker, row in dead.items()}
    orphans = await tx.all(SQL["orphans"], Orphan)
    started = [(row, _has_started(row, begun)) for row in orphans]
    held = await tx.pairs(SQL["held_by"], dict[WorkerId, int], workers=list(dead))
    company = {worker: held.get(worker, 0) if known is None else len(known) for worker, known in begun.items()}
    # for a lease that an earlier rescue left over, nobody knows what ran beside it: it never counts as alone
    alone = {worker for worker, n in company.items() if n == 1}
    seen_dead = {worker for worker, row in dead.items() if row.process in gone}
    judged: list[Judged] = [(row, yes, _judge(row, yes, alone, seen_dead)) for row, yes in started]
    await _end(tx, [one for one in judged if one[2] in ("bury", "cancel")])
    await _put_back(tx, [one for one in judged if one[2] in ("back", "suspect")], company)
    await tx.execute(SQL["delete_empty_leases"])
    for worker in dead:
        await release_holds(tx, worker)
    return _report(dead, judged)


def _has_started(row: Orphan, begun: Mapping[WorkerId, frozenset[TaskId] | None]) -> bool:
    known = begun.get(row.worker)
    return known is None or row.id in known


def _judge(row: Orphan, started: bool, alone: set[WorkerId], seen_dead: set[WorkerId]) -> Verdict:
    return verdict(
        started=started,
        alone=row.worker in alone,
        suspect=row.suspect,
        seen_dead=row.worker in seen_dead,
        cancel=row.cancel,
        attempts=row.attempts,
        max_attempts=row.max_attempts,
    )


async def _end(tx: Tx, judged: Sequence[Judged]) -> None:
    if judged:
        rows = [_bury_row(row) if sentence == "bury" else _cancel_row(row) for row, _, sentence in judged]
        ended = await tx.values(SQL["end_orphans"], Column[TaskId], rows=to_json(rows))
        await conclude(tx, ended, was="processing")


def _bury_row(row: Orphan) -> dict[str, Any]:
    error = (
        f"killed its worker (worker {row.worker} on {row.name}) on attempt {row.attempts} of "
        f"{row.max_attempts}; it ran alone, so nothing else can have done it"
    )
    # one cluster, whatever the machine is called
    named = fingerprint("killed its worker")
    return {"id": row.id, "worker": row.worker, "outcome": "failed", "error": error, "fingerprint": named}


def _cancel_row(row: Orphan) -> dict[str, Any]:
    error = "cancelled; its worker died before it could stop it"
    return {"id": row.id, "worker": row.worker, "outcome": "cancelled", "error": error, "fingerprint": None}


async def _put_back(tx: Tx, judged: Sequence[Judged], company: Mapping[WorkerId, int]) -> None:
    if judged:
        rows = [_return_row(one, company.get(one[0].worker, 0)) for one in judged]
        await tx.one(SQL["put_back"], rows=to_json(rows))


def _return_row(one: Judged, together: int) -> dict[str, Any]:
    row, started, sentence = one
    company = f" beside {together - 1} other{'s' if together > 2 else ''}" if together > 1 else ""
    return {
        "id": row.id,
        "worker": row.worker,
        "started": started,
        "suspect": sentence == "suspect",
        "error": f"its worker (worker {row.worker} on {row.name}) died while it ran{company}",
        "fingerprint": fingerprint("its worker died while it ran"),
    }


def _report(dead: Mapping[WorkerId, LostWorker], judged: Iterable[Judged]) -> list[Rescued]:
    found: dict[WorkerId, dict[Verdict, list[TaskId]]] = {worker: defaultdict(list) for worker in dead}
    names = {worker: row.name for worker, row in dead.items()}
    for row, _, sentence in judged:
        found.setdefault(row.worker, defaultdict(list))[sentence].append(row.id)
        names[row.worker] = row.name
    return [
        Rescued(
            worker,
            names[worker],
            worker in dead,
            dead[worker].journal if worker in dead else "",
            back=tuple(tasks["back"]),
            suspects=tuple(tasks["suspect"]),
            buried=tuple(tasks["bury"]),
            cancelled=tuple(tasks["cancel"]),
        )
        for worker, tasks in found.items()
    ]
