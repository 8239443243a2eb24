"""`gristmill dead`: what failed for good, why, and how to replay or remove it."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from gristmill.cli.output import (
    Json,
    Misused,
    Yes,
    confirm_removal,
    emit,
    err,
    format_cell,
    make_facts,
    make_table,
    shorten,
    to_plain,
)
from gristmill.cli.session import load_settings, parse_instant, parse_span, run, session
from gristmill.db import Tx
from gristmill.durations import format_duration
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue import HistoryEvent, Task, dead, get_task, history, list_queue_names
from gristmill.wording import format_count

app = typer.Typer(no_args_is_help=True)
Queue = Annotated[str | None, typer.Option(help="Only of this queue.")]
LETTER = "dead letter"
NOTHING = "There are no dead letters."


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="dead", help=text)


@app.command()
def stats(json: Json = False) -> None:
    """How many dead letters there are, by queue, and whether that is alarming.

    Example: gristmill dead stats
    """
    threshold = load_settings().queue.dead_alert
    found = run(_load_stats(threshold))
    emit(json, {**_as_dict(found), "threshold": threshold}, lambda: _stats_view(found, threshold))


@app.command("list")
def list_(
    queue: Queue = None,
    kind: Annotated[str | None, typer.Option(help="Only of this kind.")] = None,
    cluster: Annotated[str | None, typer.Option(help="Only of this cluster.")] = None,
    since: Annotated[str | None, typer.Option(help="Only those that died since, such as 2026-12-01T08:00.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")] = 50,
    json: Json = False,
) -> None:
    """Dead letters, the latest first.

    Example: gristmill dead list --queue extract --limit 20
    """
    wanted = {"queue": queue, "kind": kind, "fingerprint": cluster, "since": parse_instant(since) if since else None}
    found, names = run(_load_letters({**wanted, "limit": limit}))
    told = [{**to_plain(one), "document": names.get(one.owner or "")} for one in found]
    emit(json, told, lambda: _letters_table(found, names))


@app.command()
def show(task: Annotated[int, typer.Argument(help="The id of the task.")], json: Json = False) -> None:
    """One dead letter, with every failure of it.

    Example: gristmill dead show 113
    """
    found, events = run(_load_letter(TaskId(task)))
    emit(json, {"task": found, "history": events}, lambda: _letter_view(found, events))


@app.command()
def clusters(queue: Queue = None, json: Json = False) -> None:
    """Dead letters by cause: the same error but for ids, numbers, paths and addresses.

    Example: gristmill dead clusters
    """
    found = run(_load_clusters(queue))
    rows = [
        (one.fingerprint, one.count, ", ".join(one.queues), one.last, ", ".join(map(str, one.examples)), one.error)
        for one in found
    ]
    columns = ("cluster", ">letters", "queues", "last", "such as", "error")
    emit(json, found, lambda: make_table(columns, rows, empty=NOTHING))


@app.command()
def replay(
    tasks: Annotated[list[int] | None, typer.Argument(help="These dead letters.")] = None,
    queue: Annotated[str | None, typer.Option(help="All of this queue.")] = None,
    cluster: Annotated[str | None, typer.Option(help="All of this cluster.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All there are.")] = False,
    json: Json = False,
) -> None:
    """Try dead letters again: each has its full number of attempts again.

    Example: gristmill dead replay --cluster 9c1f0b22aa31
    """
    if not (tasks or queue or cluster or every):
        raise Misused("Say which dead letters to replay: their ids, --queue, --cluster or --all.")
    n = run(_replay([TaskId(task) for task in tasks or []], queue, cluster, every))
    emit(json, {"replayed": n}, lambda: _describe_replay(n))


@app.command()
def purge(
    older_than: Annotated[str | None, typer.Option(help="Remove those that died longer ago, such as 30d.")] = None,
    keep: Annotated[int | None, typer.Option(min=0, help="Remove all but this many of the newest.")] = None,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Remove dead letters for good: the old ones, and all beyond a number. The settings name both, if you do not.

    Example: gristmill dead purge --older-than 30d --keep 5000 --yes
    """
    settings = load_settings().queue
    age = settings.dead_keep_for if (given := parse_span(older_than)) is None else given
    most = settings.dead_keep if keep is None else keep
    what = f"dead letters older than {format_duration(age)}, and all but the newest {most:,}"
    confirm_removal(what, yes=yes, as_json=json)
    n = run(_purge(age, most))
    nothing = (
        f"Nothing to remove: no dead letter is older than {format_duration(age)}, and there are no more than {most:,}."
    )
    emit(json, {"purged": n}, lambda: f"Removed {format_count(n, LETTER)}." if n else nothing)


async def _load_stats(threshold: int) -> dead.DeadStats:
    async with session() as at, at.db.transaction() as tx:
        return await dead.stats(tx, threshold=threshold)


async def _load_letters(wanted: dict[str, Any]) -> tuple[list[dead.DeadLetter], dict[str, str]]:
    """The letters, and the names of the documents they belong to."""
    from gristmill.documents import names_of  # noqa: PLC0415 half of the time that the other commands on dead letters take

    async with session() as at, at.db.transaction() as tx:
        found = await dead.dead_letters(tx, **wanted)
        return found, await names_of(tx, {one.owner for one in found})


async def _load_letter(task: TaskId) -> tuple[Task, list[HistoryEvent]]:
    async with session() as at, at.db.transaction() as tx:
        found = await get_task(tx, task)
        if found.status != "failed":
            raise Refused(f"Task {task} is {found.status}, not dead: gristmill task show {task}.")
        return found, await history(tx, task)


async def _load_clusters(queue: str | None) -> list[dead.Cluster]:
    async with session() as at, at.db.transaction() as tx:
        return await dead.clusters(tx, queue)


async def _replay(tasks: Sequence[TaskId], queue: str | None, cluster: str | None, every: bool) -> int:
    async with session() as at, at.db.transaction() as tx:
        await _refuse_unknown(tx, tasks, queue, cluster)
        if not every:
            return await dead.replay(tx, ids=tasks or None, queue=queue, fingerprint=cluster)
        queues = (await dead.stats(tx, threshold=1)).by_queue
        return sum([await dead.replay(tx, queue=name) for name in queues])


async def _refuse_unknown(tx: Tx, tasks: Sequence[TaskId], queue: str | None, cluster: str | None) -> None:
    """Refuse if a named dead letter does not exist: nothing is replayed then."""
    for task in tasks:
        if (found := await get_task(tx, task)).status != "failed" or found.queue is None:
            raise Refused(f"Task {task} is {found.status}, not a dead letter: gristmill task why {task}.")
    if queue is not None and queue not in (names := await list_queue_names(tx)):
        near = get_close_matches(queue, names, n=1)
        raise Refused(f"There is no queue “{queue}”." + (f" Did you mean {near[0]}?" if near else ""))
    if cluster is not None and not await dead.dead_letters(tx, fingerprint=cluster, limit=1):
        raise Refused(f"No dead letters are in the cluster “{cluster}”: gristmill dead clusters lists them all.")


def _describe_replay(n: int) -> str:
    if not n:
        return "There was no dead letter to replay."
    return f"{format_count(n, LETTER)} {'is' if n == 1 else 'are'} pending again."


async def _purge(older_than: Any, keep: int) -> int:
    """Batch after batch, each in a transaction of its own: a long one would make other transactions wait."""
    purged = 0
    async with session() as at:
        with err.status("Removing …") as status:
            while True:
                async with at.db.transaction() as tx:
                    n = await dead.purge(tx, older_than=older_than, keep=keep)
                purged += n
                status.update(f"Removed {purged:,} …")
                if n == 0:
                    return purged


def _as_dict(found: dead.DeadStats) -> dict[str, Any]:
    return {"total": found.total, "by_queue": found.by_queue, "oldest": found.oldest, "alert": found.alert}


def _stats_view(found: dead.DeadStats, threshold: int) -> RenderableType:
    rows = [(queue, n) for queue, n in found.by_queue.items()]
    grid = make_table(("queue", ">dead letters"), rows, empty=NOTHING)
    if not found.alert:
        return grid
    many = format_count(found.total, LETTER)
    alarm = f"{many}, and {threshold} are alarming: gristmill dead clusters shows their causes."
    return Group(grid, Text(alarm, style="bold red"))


def _letters_table(found: Sequence[dead.DeadLetter], names: Mapping[str, str]) -> RenderableType:
    named = bool(names)  # dead letters of other programs belong to no document
    rows = [
        (
            str(one.id),
            one.queue,
            one.kind,
            one.died_at,
            one.attempts,
            *[shorten(names.get(one.owner or "", "–"), 40)] * named,
            shorten(one.error, 100),
        )
        for one in found
    ]
    columns = ("task", "~queue", "~kind", "died", ">attempts", *["~document"] * named, "error")
    return make_table(columns, rows, empty=NOTHING)


def _letter_view(found: Task, events: Sequence[HistoryEvent]) -> RenderableType:
    rows = [(one.at, one.what, one.attempt, one.worker, one.text or "") for one in events]
    top = make_facts(
        [
            ("task", str(found.id)),
            ("kind", found.kind),
            ("queue", found.queue),
            ("attempts", found.attempts),
            ("died", found.finished_at),
            ("cluster", found.fingerprint),
            ("payload", shorten(found.payload, 400)),
            ("error", format_cell(found.error)),
        ]
    )
    return Group(
        top, "", make_table(("when", "what", ">attempt", ">worker", ""), rows, empty="Nothing is known of it.")
    )
