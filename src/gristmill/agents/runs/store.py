"""How runs begin, go on and end; every change names the state that it comes from, and the worker that makes it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import LiteralString, NamedTuple, TypeVar

from gristmill.agents.letters import BACKGROUND_KEY, SERIAL_KEY, RunAgent
from gristmill.agents.runs.model import Run, RunState, RunWish
from gristmill.db import Column, Tx, queries
from gristmill.errors import LeaseLost, Refused, Unknown
from gristmill.ids import RunId, TaskId, WorkItemId
from gristmill.qualifier import announce_request, load_items, wake_item
from gristmill.queue import cancel, load_tasks, send
from gristmill.queue import get_task as find_task
from gristmill.scopes import scope_id

SQL = queries("gristmill.agents.runs", "runs.sql")
LONGEST_REQUEST = 100_000  # characters
PORTION = 1_000  # rows that are read at a time
OPEN_STATUSES = frozenset(("pending", "processing"))


class Held(NamedTuple):
    """How a run is while this transaction holds it."""

    state: RunState
    fence: int


class Rival(NamedTuple):
    """A run that is not over, and what it is carried by."""

    id: RunId
    item: int | None
    task: TaskId | None
    state: RunState


class Unfinished(NamedTuple):
    """A run that a task carries, or should."""

    id: RunId
    task: TaskId


class CompletedRun(NamedTuple):
    """The last run of an item that came to its end: when it was asked for, and the last message that it knew."""

    at: datetime
    heard: int | None  # None: an older program began it


T = TypeVar("T", Rival, Unfinished)


async def start_run(tx: Tx, wanted: RunWish) -> RunId:
    """Write a run down and send it on its way; background work gives way to a person's."""
    run = await add_run(tx, wanted)
    await _send_run(tx, await load_run(tx, run))
    if wanted.foreground:
        await announce_request(tx, by="run")
    return run


async def add_run(tx: Tx, wanted: RunWish) -> RunId:
    """Write a run down; that of an item is carried by the item's own task."""
    request = wanted.request.strip()
    if not request:
        raise Refused("A run needs a request: say what shall be done.")
    if len(request) > LONGEST_REQUEST:
        raise Refused(f"The request has {len(request):,} characters; {LONGEST_REQUEST:,} are the most.")
    if wanted.asked_by is None and wanted.item_type is None:
        raise Refused("A run needs somebody who asks for it, or an item that it is done for.")
    scope = await scope_id(tx, wanted.scope)
    found = await tx.only_value(
        SQL["add_run"],
        int,
        scope=scope,
        request=request,
        asked_by=wanted.asked_by,
        item=wanted.item,
        item_type=wanted.item_type,
        heard=wanted.heard,
        repository=wanted.repository,
        foreground=wanted.foreground,
    )
    return RunId(found)


async def _send_run(tx: Tx, run: Run) -> None:
    key = SERIAL_KEY if run.foreground else BACKGROUND_KEY
    task = await send(tx, RunAgent(run.id), foreground=run.foreground, serial_key=key, scope=run.scope)
    await tx.execute(SQL["note_task"], id=run.id, task=task)


async def find_run(tx: Tx, id_: RunId) -> Run | None:
    """A run, if it is still kept."""
    return await tx.one(SQL["load_run"], Run, id=id_)


async def load_run(tx: Tx, id_: RunId) -> Run:
    found = await find_run(tx, id_)
    if found is None:
        raise Unknown(f"There is no run {id_}.")
    return found


async def feel_pulse(tx: Tx, id_: RunId) -> str:
    """A mark that differs as soon as anything of the run does."""
    found = await tx.value(SQL["feel_pulse"], str, id=id_)
    if found is None:
        raise Unknown(f"There is no run {id_}.")
    return found


async def lock_run(tx: Tx, id_: RunId) -> Held:
    """Hold a run until the transaction ends: a writer of its effects or questions must do so first."""
    found = await tx.one(SQL["lock_run"], Held, id=id_)
    if found is None:
        raise Unknown(f"There is no run {id_}.")
    return found


async def hold_run(tx: Tx, id_: RunId, fence: int) -> None:
    """As `lock_run`, for the worker with this fence alone: LeaseLost if another has the run, or it was stopped."""
    held = await lock_run(tx, id_)
    if held.fence != fence or held.state != "running":
        raise LeaseLost(f"Run {id_} is not ours any more: another worker has it, or it was stopped.")


async def take_over(tx: Tx, id_: RunId, task: TaskId | None = None) -> int | None:
    """The run is ours from now on; the fence that we work under. None if it waits for a person, or is over."""
    return await tx.value(SQL["take_over"], int, id=id_, task=task)


async def note_host(tx: Tx, id_: RunId, host: str) -> None:
    await tx.execute(SQL["note_host"], id=id_, host=host)


async def complete_run(tx: Tx, id_: RunId, fence: int, report: str) -> None:
    _check_moved(await tx.value(SQL["complete_run"], id=id_, fence=fence, report=report), id_)


async def fail_run(tx: Tx, id_: RunId, fence: int, error: str) -> None:
    _check_moved(await tx.value(SQL["fail_run"], id=id_, fence=fence, error=error), id_)


def _check_moved(moved: object | None, id_: RunId) -> None:
    if moved is None:
        raise LeaseLost(f"Run {id_} is not ours any more: another worker has it, or it was stopped.")


async def rest_run(tx: Tx, id_: RunId, fence: int) -> None:
    """The run waits for a person; if the last answer came a moment ago, it goes on at once."""
    if not await try_to_rest(tx, id_, fence):
        await _requeue(tx, id_)


async def try_to_rest(tx: Tx, id_: RunId, fence: int) -> bool:
    """Whether the run waits for a person now; False if the last answer came a moment ago."""
    await hold_run(tx, id_, fence)
    if not await tx.value(SQL["has_open_questions"], run=id_):
        return False
    _check_moved(await tx.value(SQL["rest_run"], id=id_, fence=fence), id_)
    return True


async def put_back_run(tx: Tx, id_: RunId, fence: int) -> None:
    """The worker with this fence was interrupted: the run waits for the next one."""
    await tx.execute(SQL["put_back_run"], id=id_, fence=fence)


async def continue_run(tx: Tx, id_: RunId) -> bool:
    """Send a run on that waits for nobody any more; the caller holds it. Whether it goes on."""
    held = await lock_run(tx, id_)
    if held.state != "waiting_for_user" or await tx.value(SQL["has_open_questions"], run=id_):
        return False
    run = await load_run(tx, id_)
    if run.item is None:
        await _requeue(tx, id_)
    else:
        await tx.execute(SQL["requeue_run"], id=id_)
        await wake_item(tx, WorkItemId(run.item), why=f"The questions of run {id_} are answered.")
    return True


async def _requeue(tx: Tx, id_: RunId) -> None:
    await tx.execute(SQL["requeue_run"], id=id_)
    await _send_run(tx, await load_run(tx, id_))


async def stop_run(tx: Tx, id_: RunId, by: str) -> bool:
    """End a run: its worker begins nothing more. False if it was over already."""
    run = await load_run(tx, id_)
    # the task is locked before the run, as by a worker that settles it
    if not run.has_ended and run.task is not None and await _is_open(tx, run.task):
        await cancel(tx, [run.task], reason=f"the run was stopped by {by}")
    await lock_run(tx, id_)
    return await tx.value(SQL["stop_run"], id=id_, by=by) is not None


async def _is_open(tx: Tx, task: TaskId) -> bool:
    try:
        return (await find_task(tx, task)).status in OPEN_STATUSES
    except Unknown:  # the janitor has removed it
        return False


async def abandon_runs(tx: Tx) -> int:
    """End runs that nobody carries any more: their task was cancelled, used its attempts up, or is gone."""
    ended = 0
    unfinished = await _list_all(tx, SQL["list_unfinished"], Unfinished)
    tasks = {one.id: one for one in await load_tasks(tx, [row.task for row in unfinished])}
    for row in unfinished:
        task = tasks.get(row.task)
        if task is None:  # the janitor has removed it
            sentence, is_cancelled = "Its task is gone.", False
        elif task.status in OPEN_STATUSES:
            continue
        else:
            sentence, is_cancelled = task.error or f"Its task ended ({task.status}).", task.status == "cancelled"
        query = SQL["abandon_stopped"] if is_cancelled else SQL["abandon_failed"]
        ended += await tx.value(query, id=row.id, task=row.task, sentence=sentence) is not None
    return ended


async def find_run_of(tx: Tx, item: int) -> Run | None:
    """The run of an item that is not over."""
    return await tx.one(SQL["find_run_of"], Run, item=item)


async def find_last_completed(tx: Tx, item: int) -> CompletedRun | None:
    return await tx.one(SQL["find_last_completed"], CompletedRun, item=item)


async def has_runs(tx: Tx, item: int) -> bool:
    """Whether an item had a run before."""
    return await tx.only_value(SQL["has_runs"], bool, item=item)


async def note_foreground(tx: Tx, id_: RunId, foreground: bool) -> None:
    """A person waits for it by now, or nobody does any more."""
    await tx.execute(SQL["note_foreground"], id=id_, foreground=foreground)


async def find_rival(tx: Tx, run: Run) -> RunId | None:
    """Another run that is at work in the same project; the caller holds the project until the transaction ends."""
    await tx.execute(SQL["hold_project"], scope=run.scope)
    for one in await tx.all(SQL["list_running"], Rival, scope=run.scope, run=run.id):
        if one.item is not None:
            items = await load_items(tx, [WorkItemId(one.item)])
            if any(found.state == "running" for found in items.values()):
                return one.id
        elif one.task is not None and await _is_processing(tx, one.task):
            return one.id
    return None


async def _is_processing(tx: Tx, task: TaskId) -> bool:
    try:
        return (await find_task(tx, task)).status == "processing"
    except Unknown:
        return False


async def list_runs_of_items(tx: Tx) -> list[Rival]:
    """Runs of items that are not over."""
    return await _list_all(tx, SQL["list_runs_of_items"], Rival)


async def _list_all(tx: Tx, query: LiteralString, kind: type[T]) -> list[T]:
    """All rows, a portion at a time: a run beyond the first portion must not be forgotten."""
    found: list[T] = []
    while True:
        after = found[-1].id if found else 0
        rows = await tx.all(query, kind, after=after, limit=PORTION)
        found += rows
        if len(rows) < PORTION:
            return found


async def list_old_runs(tx: Tx, ids: Sequence[RunId], keep: timedelta) -> list[RunId]:
    """Those of these runs that have been over for this long, or are not known any more."""
    young = set(await tx.values(SQL["list_young"], Column[RunId], ids=list(ids), keep=keep))
    return [run for run in ids if run not in young]


async def list_expired_runs(tx: Tx, keep: timedelta, most: int) -> list[RunId]:
    """Runs that have been over for so long that nothing of them is kept, the oldest first."""
    return await tx.values(SQL["list_expired"], Column[RunId], keep=keep, look=PORTION, most=most)


async def drop_runs(tx: Tx, ids: Sequence[RunId]) -> None:
    """Remove runs that are over, with everything that stands below them in this room."""
    await tx.execute(SQL["drop_runs"], ids=list(ids))
