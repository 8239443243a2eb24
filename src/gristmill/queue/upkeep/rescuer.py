"""Takes back the tasks of dead workers: what was not started goes back unharmed, the culprit is found out."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from gristmill.db import Tx, queries
from gristmill.ids import TaskId, WorkerId
from gristmill.queue import journal
from gristmill.queue.fingerprint import fingerprint
from gristmill.queue.groups import conclude
from gristmill.queue.letters import to_json
from gristmill.queue.limiter import release_holds

SQL = queries("gristmill.queue.upkeep", "rescuer.sql")

Verdict = Literal["back", "suspect", "bury", "cancel"]
Judged = tuple[Any, bool, Verdict]  # the ticket, whether it had been started, what becomes of it
Read = Callable[[str], frozenset[TaskId] | None]


@dataclass(frozen=True)
class Rescued:
    """What was taken back from one worker; `dead` is false if its end was known, but not this lease."""

    worker: WorkerId
    name: str
    dead: bool
    journal: str = field(default="", compare=False)
    back: tuple[TaskId, ...] = ()
    suspects: tuple[TaskId, ...] = ()
    buried: tuple[TaskId, ...] = ()
    cancelled: tuple[TaskId, ...] = ()


DOUBT = 3  # more attempts for a task whose worker only fell silent: the machine may have slept, the network been cut


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
    """The processes of all workers that are believed to live: what `gone_processes` wants to know."""
    return [row.process for row in await tx.all(SQL["processes"])]


async def rescue(tx: Tx, *, gone: Sequence[str] = (), read: Read = journal.read_begun) -> list[Rescued]:
    """Take back every lease whose worker is silent for too long, or whose process is in `gone`.

    Any number of rescuers may do this at the same time; each dead worker is rescued by one of them. What a worker had
    begun stands in its notes; if they cannot be read, everything it held counts as begun.
    """
    dead = {row.id: row for row in await tx.all(SQL["lose_workers"], gone=list(gone))}
    begun = {worker: read(row.journal) for worker, row in dead.items()}
    orphans = await tx.all(SQL["orphans"])
    started = [(row, _has_started(row, begun)) for row in orphans]
    held = {row.worker: row.n for row in await tx.all(SQL["held_by"], workers=list(dead))}
    company = {worker: held.get(worker, 0) if known is None else len(known) for worker, known in begun.items()}
    # of a straggler's company nothing is known any more, so it is never said to have been alone
    alone = {worker for worker, n in company.items() if n == 1}
    seen_dead = {worker for worker, row in dead.items() if row.process in gone}
    judged: list[Judged] = [(row, yes, _judge(row, yes, alone, seen_dead)) for row, yes in started]
    await _end(tx, [one for one in judged if one[2] in ("bury", "cancel")])
    await _put_back(tx, [one for one in judged if one[2] in ("back", "suspect")], company)
    await tx.execute(SQL["delete_empty_leases"])
    for worker in dead:
        await release_holds(tx, WorkerId(worker))
    return _report(dead, judged)


def _has_started(row: Any, begun: Mapping[int, frozenset[TaskId] | None]) -> bool:
    known = begun.get(row.worker)
    return known is None or row.id in known


def _judge(row: Any, started: bool, alone: set[int], seen_dead: set[int]) -> Verdict:
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
        ended = [row.id for row in await tx.all(SQL["end_orphans"], rows=to_json(rows))]
        await conclude(tx, ended, was="processing")


def _bury_row(row: Any) -> dict[str, Any]:
    error = (
        f"killed its worker (worker {row.worker} on {row.name}) on attempt {row.attempts} of "
        f"{row.max_attempts}; it ran alone, so nothing else can have done it"
    )
    # one cluster, whatever the machine is called
    named = fingerprint("killed its worker")
    return {"id": row.id, "worker": row.worker, "outcome": "failed", "error": error, "fingerprint": named}


def _cancel_row(row: Any) -> dict[str, Any]:
    error = "cancelled; its worker died before it could stop it"
    return {"id": row.id, "worker": row.worker, "outcome": "cancelled", "error": error, "fingerprint": None}


async def _put_back(tx: Tx, judged: Sequence[Judged], company: Mapping[int, int]) -> None:
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


def _report(dead: Mapping[int, Any], judged: Iterable[Judged]) -> list[Rescued]:
    found: dict[int, dict[Verdict, list[TaskId]]] = {worker: defaultdict(list) for worker in dead}
    names = {worker: row.name for worker, row in dead.items()}
    for row, _, sentence in judged:
        found.setdefault(row.worker, defaultdict(list))[sentence].append(row.id)
        names[row.worker] = row.name
    return [
        Rescued(
            WorkerId(worker),
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
