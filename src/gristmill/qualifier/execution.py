"""Executes items: claims one, waits for silence if no person waits for it, runs it, and writes what came of it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

import orjson

from gristmill.db import Database, Tx, queries
from gristmill.errors import Cancelled, GristmillError, LeaseLost, Permanent, Transient
from gristmill.ids import TaskId, WorkItemId
from gristmill.qualifier.executor import Checkpoint, Executor, ExecutorResult, ItemQuestion
from gristmill.qualifier.health import choose_backoff, close_breaker, may_try, note_failure, note_healthy
from gristmill.qualifier.idle import BackgroundItem, RequestWatch
from gristmill.qualifier.letters import RunInBackground, RunItem
from gristmill.qualifier.line import send_run
from gristmill.qualifier.memory import load_memory
from gristmill.qualifier.model import ItemMemory, ItemMessage, ItemState, WorkItem
from gristmill.qualifier.moving import make_keepable, move_item
from gristmill.qualifier.store import add_message, hold_item, list_messages
from gristmill.queue import Answer, Done, Skip, Snooze, current
from gristmill.settings import QualifierSettings
from gristmill.telemetry import log

SQL = queries("gristmill.qualifier", "execution.sql")
BY = "executor"
ATTEMPTS = 3  # after so many failures that are no fault of the world, an item ends in `error`
GRACE = 0.05  # seconds in which an executor that is interrupted may end by itself
MakeCheckpoint = Callable[[WorkItem, int, dict[str, Any]], Checkpoint]
ELSEWHERE = Skip("the item went another way")
HEARD = ("user", "answer", "mail", "item")  # messages that an item must hear before it is completed


@dataclass(frozen=True)
class ItemRun:
    """An item in the hands of this worker; `item.run` fences what it writes."""

    item: WorkItem
    task: TaskId
    memory: ItemMemory | None = None
    messages: Sequence[ItemMessage] = ()
    checkpoint: Checkpoint | None = None


@dataclass(frozen=True)
class Execution:
    """Answers the letters that run items."""

    db: Database
    executor: Executor
    watch: RequestWatch
    settings: QualifierSettings

    async def run(self, letter: RunItem | RunInBackground) -> Answer:
        task = current().id
        async with self.watch.follow(letter.item) as follower:
            async with self.db.transaction() as tx:
                claimed = await claim_item(tx, letter.item, task)
            if claimed is None:
                return ELSEWHERE
            if isinstance(letter, RunInBackground):
                is_quiet = await self.watch.wait_for_silence(follower, self.settings.quiet)
                if not is_quiet:
                    return await self._give_way(claimed, follower)
            else:
                follower.called.clear()  # nobody's request interrupts what a person waits for
            begun = await self._dispatch(claimed)
            return await self._execute(begun, follower) if isinstance(begun, ItemRun) else begun

    async def _dispatch(self, item: WorkItem) -> ItemRun | Answer:
        """Ask the executor whether it takes the item; one that does not is asked less and less often."""
        name = self.executor.name
        async with self.db.transaction() as tx:
            wait = await may_try(tx, name)
        if wait is not None:
            return await self._put_back(item, wait, "The executor does not answer: its breaker is open.")
        try:
            await self.executor.check()
        except Transient as error:
            async with self.db.transaction() as tx:
                await note_failure(tx, name, make_keepable(str(error)))
            return await self._put_back(item, None, f"The executor takes no work: {error}")
        async with self.db.transaction() as tx:
            await close_breaker(tx, name)
            return await begin_run(tx, item, self._make_checkpoint) or ELSEWHERE

    def _make_checkpoint(self, run: WorkItem, done: int, data: dict[str, Any]) -> Checkpoint:
        return Checkpoint(done, data, partial(self._keep, item=run))

    async def _keep(self, checkpoint: Checkpoint, *, item: WorkItem) -> None:
        async with self.db.transaction() as tx:
            body = orjson.dumps(dict(checkpoint.data)).decode()
            kept = await tx.one(SQL["keep_checkpoint"], item=item.id, run=item.run, done=checkpoint.done, data=body)
        if kept is None:
            raise LeaseLost(f"Item {item.id} is executed by another worker, or wanted no more.")

    async def _execute(self, run: ItemRun, follower: BackgroundItem) -> Answer:
        assert run.checkpoint is not None, "a run that has begun has one"
        work = asyncio.create_task(self.executor.run(run.item, run.memory, run.messages, run.checkpoint))
        call = asyncio.create_task(self._wait_for_call(run.item, follower))
        try:
            await asyncio.wait({work, call}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return await self._conclude(run, work)
            await _stop(work)
            return await self._give_way(run.item, follower)
        finally:
            call.cancel()
            work.cancel()

    async def _wait_for_call(self, item: WorkItem, follower: BackgroundItem) -> None:
        """Wait until the run must end; an item that a person waits for ends only if nobody wants it any more."""
        while True:
            await follower.called.wait()
            if follower.stopped or not item.foreground:
                return
            follower.called.clear()

    async def _conclude(self, run: ItemRun, work: "asyncio.Task[ExecutorResult | ItemQuestion]") -> Answer:
        try:
            outcome = work.result()
        except (LeaseLost, Cancelled):
            return ELSEWHERE
        except Transient as error:
            async with self.db.transaction() as tx:
                await note_failure(tx, self.executor.name, make_keepable(str(error)))
            return await self._put_back(run.item, None, f"The executor is busy: {error}")
        except Exception as error:  # noqa: BLE001 whatever it is, the item says so
            return await self._fail(run, error)
        match outcome:
            case ExecutorResult():
                return Done(partial(_finish, run=run, result=outcome, executor=self.executor.name))
            case ItemQuestion():
                return Done(partial(_ask, run=run, question=outcome, executor=self.executor.name))

    async def _fail(self, run: ItemRun, error: Exception) -> Answer:
        """An unknown error may be an accident, and is tried again by the queue; the last one ends the item."""
        if not isinstance(error, GristmillError):
            log.exception("item.failed", item=run.item.id, exc_info=error)
        if isinstance(error, Permanent) or current().attempt >= ATTEMPTS:
            reason = f"{type(error).__name__}: {error}" if not isinstance(error, GristmillError) else str(error)
            return Skip(reason, write=partial(_end_in_error, run=run, reason=reason))
        async with self.db.transaction() as tx:
            await put_back(tx, run.item, why=f"It failed and is tried again: {error}")
        raise error

    async def _give_way(self, item: WorkItem, follower: BackgroundItem) -> Answer:
        """Back into the line, with its checkpoint; it is tried again after the quiet time of the settings."""
        if follower.stopped:
            return ELSEWHERE
        async with self.db.transaction() as tx:
            await put_back(tx, item, why="A person asked for something: it goes on when nobody does.")
        return Snooze(self.settings.quiet, "a person asked for something: it goes on when nobody does")

    async def _put_back(self, item: WorkItem, wait: timedelta | None, why: str) -> Answer:
        async with self.db.transaction() as tx:
            failures = item.dispatch_failures + (wait is None)
            await put_back(tx, item, why=why, dispatch_failures=failures)
        return Snooze(wait or choose_backoff(failures), why)


async def _stop(work: "asyncio.Task[ExecutorResult | ItemQuestion]") -> None:
    """Interrupt an executor; one that does not end soon is left alone: its checkpoint is fenced."""
    work.cancel()
    await asyncio.wait({work}, timeout=GRACE)


# --- what is written


async def claim_item(tx: Tx, id_: WorkItemId, task: TaskId) -> WorkItem | None:
    """Take an item that waits with this task; one whose worker died goes on. None if it went another way."""
    item = await hold_item(tx, id_)
    if item is None or item.task != task:
        return None
    if item.state in ("dispatched", "running"):  # the worker that had this task died, or lost it
        await move_item(tx, id_, "ready_for_execution", since=[item.state], why="Its worker was lost.", by=BY)
    run = item.run + 1
    if not await move_item(
        tx, id_, "dispatched", since=["ready_for_execution"], why="An executor takes it.", by=BY, run=run
    ):
        return None
    return replace(item, run=run, state="dispatched")


async def _hold_run(tx: Tx, item: WorkItem, state: ItemState) -> WorkItem | None:
    """The item, if it still is in the hands of this run."""
    held = await hold_item(tx, item.id)
    return held if held is not None and (held.run, held.state) == (item.run, state) else None


class _CheckpointRow(NamedTuple):
    done: int
    data: dict[str, Any]


async def begin_run(tx: Tx, item: WorkItem, make_checkpoint: MakeCheckpoint) -> ItemRun | None:
    """From here on the executor works on it; messages that come later are heard when it ends."""
    held = await _hold_run(tx, item, "dispatched")
    if held is None or held.task is None:
        return None
    messages = await list_messages(tx, item.id)
    now = await tx.only_value(SQL["read_clock"], datetime)
    await move_item(
        tx,
        item.id,
        "running",
        since=["dispatched"],
        why="The executor works on it.",
        by=BY,
        started_at=now,
        heard=max((one.id for one in messages), default=0),
    )
    memory = await _load_memory_of(tx, held)
    kept = await tx.one(SQL["load_checkpoint"], _CheckpointRow, item=item.id)
    running = replace(held, state="running", started_at=now)
    checkpoint = make_checkpoint(running, kept.done if kept else 0, kept.data if kept else {})
    return ItemRun(running, held.task, memory, messages, checkpoint)


async def _load_memory_of(tx: Tx, item: WorkItem) -> ItemMemory | None:
    """A copy has that of its original until it is decided itself."""
    return await load_memory(tx, item.id) or (await load_memory(tx, item.origin) if item.origin else None)


async def put_back(tx: Tx, item: WorkItem, *, why: str, dispatch_failures: int | None = None) -> bool:
    """Into the line again, with the task that it has; its checkpoint stays."""
    held = await hold_item(tx, item.id)
    if held is None or held.run != item.run or held.state not in ("dispatched", "running"):
        return False
    failures = held.dispatch_failures if dispatch_failures is None else dispatch_failures
    return await move_item(
        tx, item.id, "ready_for_execution", since=[held.state], why=why, by=BY, dispatch_failures=failures
    )


async def _finish(tx: Tx, *, run: ItemRun, result: ExecutorResult, executor: str) -> None:
    """Keep the result. Messages and decisions that came meanwhile put the item back in line; it knows them then."""
    await note_healthy(tx, executor)
    held = await _hold_run(tx, run.item, "running")
    if held is None:
        return
    await tx.execute(
        SQL["keep_result"],
        item=held.id,
        run=held.run,
        by=result.by,
        summary=make_keepable(result.summary),
        reply=result.reply and make_keepable(result.reply),
        asked=orjson.dumps([asdict(one) for one in result.asked]).decode(),
        citations=orjson.dumps([asdict(one) for one in result.citations]).decode(),
    )
    await tx.execute(SQL["drop_checkpoint"], item=held.id)
    if news := await _find_news(tx, run, held):
        await _requeue(tx, held, news)
    else:
        why = "Its work is done. A reply is drafted, not sent." if result.reply else "Its work is done."
        await move_item(tx, held.id, "completed", since=["running"], why=why, by=result.by, dispatch_failures=0)


async def _find_news(tx: Tx, run: ItemRun, held: WorkItem) -> str:
    """What the run did not know, in a sentence; empty if nothing.

    A mail is a message when it comes, and in the memory of the item when it is decided. A run that begins in between
    has heard the message, and nothing of what the mail asks.
    """
    missed = await tx.only_value(SQL["count_missed"], int, item=held.id, heard=held.heard, kinds=list(HEARD))
    if missed:
        return f"{missed} message{'s' if missed > 1 else ''} came while it ran."
    memory = await _load_memory_of(tx, held)
    if held.document != run.item.document or (memory and memory.data) != (run.memory and run.memory.data):
        return "It was decided again while it ran."
    return ""


async def _requeue(tx: Tx, item: WorkItem, why: str) -> None:
    task = await send_run(tx, item)
    changed: dict[str, Any] = {"task": task, "dispatch_failures": 0}
    await move_item(tx, item.id, "ready_for_execution", since=["running"], why=why, by=BY, **changed)


async def _ask(tx: Tx, *, run: ItemRun, question: ItemQuestion, executor: str) -> None:
    """Wait for a person, unless one has said something meanwhile that may be the answer."""
    await note_healthy(tx, executor)
    held = await _hold_run(tx, run.item, "running")
    if held is None:
        return
    if news := await _find_news(tx, run, held):
        await _requeue(tx, held, f"It had a question. {news}")
        return
    await add_message(tx, held.id, "question", question.text, by=BY)
    text = make_keepable(question.text)
    await move_item(tx, held.id, "waiting_for_user", since=["running"], why="It has a question.", by=BY, question=text)


async def _end_in_error(tx: Tx, *, run: ItemRun, reason: str) -> None:
    if await _hold_run(tx, run.item, "running") is not None:
        await move_item(tx, run.item.id, "error", since=["running"], why=reason, by=BY)
