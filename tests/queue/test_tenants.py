"""A client's tasks: it sends, sees, moves, cancels and retries its own, and never learns of another's."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from engine import Grind, claimed, registered, settled

from gristmill.db import Database, Tx
from gristmill.errors import Permanent, Refused
from gristmill.ids import TaskId
from gristmill.queue import (
    Done,
    Envelope,
    TaskFilter,
    Unique,
    Worker,
    add_schedule,
    bind,
    cancel,
    dead,
    find_tasks,
    get_task,
    group_progress,
    history,
    list_schedules,
    on,
    open_group,
    remove_schedule,
    retry_tasks,
    run_schedule,
    seal,
    send,
    send_many,
    set_foreground,
    set_position,
    set_priority,
    set_queue,
    why,
)
from gristmill.queue.outcome import Bury
from gristmill.scopes import GLOBAL_ID, Scope, scope_id

ACME, BETA = Scope("acme"), Scope("beta")
NOWHERE = TaskId(999_999_999)

ASKED: dict[str, Callable[[Tx, TaskId], Awaitable[Any]]] = {
    "get_task": get_task,
    "why": why,
    "history": history,
    "group_progress": group_progress,
    "cancel": lambda tx, task: cancel(tx, [task]),
    "retry": lambda tx, task: retry_tasks(tx, [task]),
    "set_priority": lambda tx, task: set_priority(tx, task, 5),
    "set_position": lambda tx, task: set_position(tx, task, 1),
    "set_foreground": set_foreground,
    "seal": seal,
    "send after it": lambda tx, task: send(tx, Grind(1), after=task),
    "send into it": lambda tx, task: send(tx, Grind(1), parent=task),
    "children of it": lambda tx, task: find_tasks(tx, TaskFilter(parent=task)),
}


async def answer_of(db: Database, asked: str, task: TaskId, scope: Scope) -> str:
    """What is said of this task, without its number."""
    try:
        async with db.transaction(seen_from=scope) as tx:
            said = repr(await ASKED[asked](tx, task))
    except Refused as refused:
        said = str(refused)
    return re.sub(r"\d+", "N", said)


@pytest.mark.parametrize("asked", ASKED)
async def test_another_clients_task_or_group_is_as_one_that_does_not_exist(db: Database, asked: str) -> None:
    async with db.transaction(seen_from=BETA) as tx:
        task = await send(tx, Grind(1))
        group = await open_group(tx, label="secret")
        await send(tx, Grind(2), parent=group)
    nothing = await answer_of(db, asked, NOWHERE, ACME)
    assert await answer_of(db, asked, task, ACME) == nothing
    assert await answer_of(db, asked, group, ACME) == nothing
    async with db.transaction() as tx:
        untouched = [(one.status, one.priority, one.position) for one in (await find_tasks(tx, TaskFilter())).tasks]
    assert untouched == [("pending", 0, None)] * 3


async def test_lists_and_dead_letters_show_ones_own(db: Database) -> None:
    for scope in (ACME, BETA):
        async with db.transaction(seen_from=scope) as tx:
            await send(tx, Grind(1))
            await send(tx, Grind(2))
    async with db.transaction() as tx:
        worker = await registered(tx)
        second = [claim for claim in await claimed(tx, worker, 4) if claim.payload == '{"grain": 2}']
        await settled(tx, worker, second, Bury("broken"))
    async with db.transaction(seen_from=ACME) as tx:
        own = await scope_id(tx, ACME)
        assert {task.scope for task in (await find_tasks(tx, TaskFilter())).tasks} == {own}
        assert len((await find_tasks(tx, TaskFilter())).tasks) == 2
        assert [letter.error for letter in await dead.dead_letters(tx)] == ["broken"]
        assert [cluster.count for cluster in await dead.clusters(tx)] == [1]
        assert (await dead.stats(tx, threshold=10)).total == 1


async def test_a_client_moves_cancels_and_retries_its_own(db: Database) -> None:
    async with db.transaction(seen_from=ACME) as tx:
        first, second = await send_many(tx, [Grind(1), Grind(2)])
        await set_priority(tx, first, 5)
        assert (await why(tx, second)).sentence.startswith("no worker serves this queue")
        await cancel(tx, [second])
        assert (await get_task(tx, second)).status == "cancelled"
        assert (await retry_tasks(tx, [second])).tasks == (second,)
        assert (await get_task(tx, second)).status == "pending"
    async with db.transaction() as tx:
        assert (await get_task(tx, first)).priority == 5


async def test_a_clients_place_in_line_counts_its_own_tasks_alone(db: Database) -> None:
    async with db.transaction() as tx:
        await registered(tx)
    async with db.transaction(seen_from=BETA) as tx:
        await send_many(tx, [Grind(n) for n in range(20)])
    async with db.transaction(seen_from=ACME) as tx:
        _, second = await send_many(tx, [Grind(1), Grind(2)])
        assert "behind 1 other;" in (await why(tx, second)).sentence
    async with db.transaction() as tx:
        assert "behind 21 others;" in (await why(tx, second)).sentence


async def test_clients_with_the_same_unique_or_serial_key_do_not_meet(db: Database) -> None:
    tasks: list[TaskId] = []
    for scope in (ACME, BETA):
        async with db.transaction(seen_from=scope) as tx:
            tasks.append(await send(tx, Grind(1), unique=Unique("import", conflict="error"), serial_key="import"))
            tasks.append(await send(tx, Grind(2), serial_key="import"))
    assert len(set(tasks)) == 4
    async with db.transaction() as tx:
        waits = [(await get_task(tx, task)).wait for task in tasks]
        assert waits == [None, "serial", None, "serial"]
        worker = await registered(tx)
        heads = await claimed(tx, worker, 4)
        assert [claim.id for claim in heads] == [tasks[0], tasks[2]]
        await settled(tx, worker, heads[:1])
        assert [claim.id for claim in await claimed(tx, worker, 4)] == [tasks[1]]


async def test_a_clients_cancel_reaches_the_group_and_the_follower_of_everybody(db: Database) -> None:
    async with db.transaction() as tx:
        own = await scope_id(tx, ACME)
        group = await open_group(tx)
        child = await send(tx, Grind(1), parent=group, scope=own)
        await seal(tx, group)
        follower = await send(tx, Grind(2), after=child)
    async with db.transaction(seen_from=ACME) as tx:
        await cancel(tx, [child])
    async with db.transaction() as tx:
        assert (await group_progress(tx, group)).status == "cancelled"
        assert (await get_task(tx, follower)).status == "cancelled"


async def test_a_notice_from_anybody_cancels_nothing(db: Database) -> None:
    began, may = asyncio.Event(), asyncio.Event()

    async def wait(_: Grind) -> Done:
        began.set()
        await may.wait()
        return Done()

    async with db.transaction(seen_from=BETA) as tx:
        task = await send(tx, Grind(1))
        asked = await send(tx, Grind(2))
    worker = Worker(db, bind(on(Grind, wait)), until_idle=True, maintenance=False)
    running = asyncio.create_task(worker.run())
    await began.wait()
    async with db.transaction(seen_from=ACME) as tx:
        await tx.one("SELECT pg_notify('gristmill', %(notice)s)", notice=f"cancel {task}")
    async with db.transaction(seen_from=BETA) as tx:
        await cancel(tx, [asked])
    while True:  # notices come in their order: this one was heard after the false one
        async with db.transaction() as tx:
            if (await get_task(tx, asked)).status == "cancelled":
                break
        await asyncio.sleep(0.01)
    may.set()
    await running
    async with db.transaction() as tx:
        assert (await get_task(tx, task)).status == "completed"


async def test_a_limit_that_others_have_taken_is_told_without_telling_who(db: Database) -> None:
    async with db.transaction(seen_from=BETA) as tx:
        await send(tx, Grind(1))
    async with db.transaction() as tx:
        await set_queue(tx, "mill", concurrency=1)
        await claimed(tx, await registered(tx))
    async with db.transaction(seen_from=ACME) as tx:
        own = await send(tx, Grind(2))
        assert (await why(tx, own)).state == "at its limit"


async def test_schedules_of_two_clients_may_have_one_name(db: Database) -> None:
    for scope in (ACME, BETA):
        async with db.transaction(seen_from=scope) as tx:
            await add_schedule(tx, "nightly", Grind(1), cron="0 3 * * *")
    async with db.transaction() as tx:
        await add_schedule(tx, "nightly", Grind(9), cron="0 4 * * *")
        await add_schedule(tx, "nightly", Grind(8), cron="0 5 * * *", replace=True)
    async with db.transaction(seen_from=ACME) as tx:
        assert sorted((one.scope == GLOBAL_ID, one.payload) for one in await list_schedules(tx)) == [
            (False, '{"grain": 1}'),
            (True, '{"grain": 8}'),
        ]
        await remove_schedule(tx, "nightly")
        with pytest.raises(Refused, match="There is no schedule “nightly”"):
            await run_schedule(tx, "nightly")
    async with db.transaction() as tx:
        assert len(await list_schedules(tx)) == 2


async def test_a_schedule_sends_for_its_client(db: Database) -> None:
    async with db.transaction(seen_from=ACME) as tx:
        await add_schedule(tx, "nightly", Grind(1), cron="0 3 * * *")
        await run_schedule(tx, "nightly")
    assert await scopes_of(db) == ["acme"]


# --- whose a letter is


async def scopes_of(db: Database) -> list[str]:
    async with db.transaction() as tx:
        names = {row.id: row.client or "GLOBAL" for row in await tx.all("SELECT id, client FROM scope")}
        return [names[task.scope] for task in reversed((await find_tasks(tx, TaskFilter())).tasks)]


async def test_a_letter_belongs_to_whom_the_task_belongs_that_sent_it(db: Database) -> None:
    async def pass_on(letter: Grind) -> Done:
        async def write(tx: Tx) -> None:
            await send(tx, Grind(letter.grain + 100))

        if letter.grain > 1:
            return Done()
        async with db.transaction() as tx:
            await send(tx, Grind(200))
        return Done(write=write, then=(Grind(300), Envelope(Grind(400), scope=GLOBAL_ID)))

    async with db.transaction(seen_from=ACME) as tx:
        await send(tx, Grind(1))
    await Worker(db, bind(on(Grind, pass_on)), until_idle=True, maintenance=False).run()
    assert sorted(await scopes_of(db)) == ["GLOBAL", "acme", "acme", "acme", "acme"]


async def test_who_works_for_a_client_sends_for_that_client(db: Database) -> None:
    async def act(letter: Grind) -> Done:
        if letter.grain == 1:
            async with db.transaction(seen_from=ACME) as tx:
                await send(tx, Grind(2))
        return Done()

    async with db.transaction() as tx:
        await send(tx, Grind(1))
    await Worker(db, bind(on(Grind, act)), until_idle=True, maintenance=False).run()
    assert await scopes_of(db) == ["GLOBAL", "acme"]


async def test_a_batch_of_several_clients_must_say_whose_its_letters_are(db: Database) -> None:
    refused: list[str] = []

    async def pass_on(letters: list[Grind]) -> list[Done]:
        try:
            async with db.transaction() as tx:
                await send(tx, Grind(100))
        except Permanent as error:
            refused.append(str(error))
        return [Done() for _ in letters]

    for scope in (ACME, BETA):
        async with db.transaction(seen_from=scope) as tx:
            await send(tx, Grind(1))
    await Worker(db, bind(on(Grind, pass_on, batch=10)), until_idle=True, maintenance=False).run()
    assert refused == ["the tasks of this batch belong to several clients: name the scope on the envelope"]


async def test_what_nobody_sends_for_a_client_is_everybodys(db: Database) -> None:
    async with db.transaction() as tx:
        await send_many(tx, [Grind(n) for n in range(3)])
    assert await scopes_of(db) == ["GLOBAL"] * 3
