"""Execution: one claim, silence before background work, interrupts, checkpoints, messages, backoff, recovery."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest
from workroom import PATIENCE, Puppet, Workroom

from gristmill.db import Database
from gristmill.errors import Permanent, Transient
from gristmill.ids import TaskId, WorkItemId
from gristmill.qualifier.adding import ItemWish, add_item, answer, cancel_item, say
from gristmill.qualifier.execution import begin_run, claim_item, put_back
from gristmill.qualifier.executor import Checkpoint, ExecutorResult, ItemQuestion
from gristmill.qualifier.health import BACKOFF, choose_backoff, load_health, may_try, note_failure
from gristmill.qualifier.idle import RequestNotes, RequestWatch, announce_request, load_last_request
from gristmill.qualifier.line import place_item, position_item
from gristmill.qualifier.memory import delete_memory, load_memory, save_memory
from gristmill.qualifier.model import ItemMemory, WorkItem
from gristmill.qualifier.store import list_in_line, load_result
from gristmill.queue import cancel, run_now
from gristmill.scopes import GLOBAL
from gristmill.settings import QualifierSettings

NEVER = timedelta(0)
LONG = timedelta(hours=1)


async def a_ready_item(room: Workroom, body: str = "NOW", name: str = "letter.txt") -> WorkItem:
    await room.come(body, name=name)
    await room.decide()
    return (await room.items())[-1]


# --- a run


async def test_the_result_of_a_run_is_kept(room: Workroom) -> None:
    room.executor.act = lambda *_: ExecutorResult("All about it.", "Dear Ana", by="puppet")
    await room.come("NOW")
    await room.work()
    result = await room.do(load_result, (await room.item()).id)
    assert (result.summary, result.reply, result.by) == ("All about it.", "Dear Ana", "puppet")
    assert await room.states() == ["completed"]


async def test_the_executor_is_given_the_memory_of_the_item(room: Workroom) -> None:
    item = await a_ready_item(room)
    memory = ItemMemory(
        "An invoice.", ["invoice::17"], [4, 5], {"amount": "12 EUR"}, "now", "It is due.", "email", "m1"
    )
    await room.do(save_memory, item.id, memory)
    await room.work()
    assert room.executor.memories == [memory]
    assert await room.do(delete_memory, item.id)
    assert await room.do(load_memory, item.id) is None
    assert not await room.do(delete_memory, item.id)


async def test_a_question_waits_for_a_person_and_the_answer_lets_it_go_on(room: Workroom) -> None:
    room.executor.act = lambda item, messages, _: (
        ExecutorResult("So be it.") if messages else ItemQuestion("Which one?")
    )
    item = await a_ready_item(room)
    await room.work()
    asked = await room.item()
    assert (asked.state, asked.question) == ("waiting_for_user", "Which one?")
    await room.do(answer, item.id, "The blue one.", by="jana")
    assert (await room.item()).question is None
    await room.work()
    assert (await room.item()).state == "completed"
    assert await room.messages() == [("question", "Which one?"), ("answer", "The blue one.")]
    assert [run[1] for run in room.executor.runs] == [[], ["Which one?", "The blue one."]]


async def test_messages_that_come_while_it_runs_put_it_back_in_line_with_them_in_its_context(room: Workroom) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def work(item: WorkItem, messages: Any, checkpoint: Checkpoint) -> ExecutorResult:
        begun.set()
        await go_on.wait()
        return ExecutorResult(f"{len(messages)} messages")

    room.executor.act = work
    item = await a_ready_item(room)
    async with room.working():
        await asyncio.wait_for(begun.wait(), PATIENCE)
        said = await room.do(say, item.id, "One thing more.", by="jana")
        assert said.state == "running"
        go_on.set()
        await room.until_state("completed")
    assert [run[1] for run in room.executor.runs] == [[], ["One thing more."]]
    assert "1 message came while it ran." in [event.why for event in await room.events()]


# --- errors


async def test_a_permanent_error_ends_the_item_at_once(room: Workroom) -> None:
    room.executor.act = lambda *_: Permanent("It makes no sense.")
    await room.come("NOW")
    await room.work()
    item = await room.item()
    assert (item.state, item.error, len(room.executor.runs)) == ("error", "It makes no sense.", 1)


async def test_an_unknown_error_is_tried_three_times(room: Workroom, monkeypatch: pytest.MonkeyPatch) -> None:
    room.executor.act = lambda *_: ValueError("a bug")
    await room.come("NOW")
    async with room.db.transaction() as tx:
        await tx.execute("INSERT INTO queue (name, retry_base) VALUES ('background', '10 ms')")
    await room.work()
    item = await room.item()
    assert (item.state, item.error, len(room.executor.runs)) == ("error", "ValueError: a bug", 3)


async def test_a_busy_world_is_no_error_of_the_item(room: Workroom) -> None:
    item = await a_ready_item(room)
    answers: list[Any] = [Transient("the model is busy"), ExecutorResult("done")]
    room.executor.act = lambda *_: answers.pop(0)
    async with room.working():
        await room.until(lambda: backed_off(room))
    assert ((await room.item()).state, (await room.item()).dispatch_failures) == ("ready_for_execution", 1)
    await hurry(room, item)
    await room.work()
    item = await room.item()
    assert (item.state, item.dispatch_failures) == ("completed", 0)


async def backed_off(room: Workroom) -> bool:
    return bool(await room.rows("SELECT FROM task WHERE wait = 'time' AND queue IN ('background', 'execution')"))


async def hurry(room: Workroom, item: WorkItem) -> None:
    """Let the task of an item run that waits for its time."""
    await room.do(run_now, item.task)


async def test_an_executor_that_takes_no_work_is_asked_less_and_less_often(room: Workroom) -> None:
    def refuse() -> None:
        raise Transient("nobody is there")

    room.executor.available = refuse
    item = await a_ready_item(room)
    waits = []
    for _ in range(3):
        async with room.working():
            await room.until(lambda: backed_off(room))
        (task,) = await room.rows("SELECT run_at - clock() AS wait, error FROM task WHERE id = %(id)s", id=item.task)
        waits.append(round(task.wait.total_seconds(), -1 if task.wait > timedelta(seconds=20) else 0))
        assert task.error == "The executor takes no work: nobody is there"
        await hurry(room, item)
    assert (await room.item()).dispatch_failures == 3
    assert waits == [5, 15, 30]
    assert room.executor.runs == []


def test_the_backoff_of_dispatching() -> None:
    assert [choose_backoff(n).total_seconds() for n in (1, 2, 3, 4, 5, 6, 60)] == [5, 15, 30, 60, 300, 300, 300]
    assert len(BACKOFF) == 5


async def test_five_failures_open_the_breaker_and_after_thirty_seconds_one_may_try(room: Workroom) -> None:
    for n in range(5):
        assert await room.do(may_try, "puppet") is None, n
        await room.do(note_failure, "puppet", "nobody is there")
    assert await room.do(may_try, "puppet") == timedelta(seconds=30)
    assert (await room.do(load_health, "puppet")).state == "open"
    async with room.db.transaction() as tx:
        await tx.one("SELECT set_config('gristmill.clock_offset', '31 s', true)")
        assert (await load_health(tx, "puppet")).state == "half-open"
        assert await may_try(tx, "puppet") is None
        assert await may_try(tx, "puppet") == timedelta(seconds=30)


async def test_while_the_breaker_is_open_no_item_is_dispatched_and_success_closes_it(room: Workroom) -> None:
    item = await a_ready_item(room)
    for _ in range(5):
        await room.do(note_failure, "puppet", "nobody is there")
    async with room.working():
        await room.until(lambda: backed_off(room))
    assert (await room.item()).dispatch_failures == 0
    async with room.db.transaction() as tx:
        await tx.execute("UPDATE executor_health SET opened_at = opened_at - interval '1 min'")
    await hurry(room, item)
    await room.work()
    assert (await room.item()).state == "completed"
    health = await room.do(load_health, "puppet")
    assert (health.state, health.failures, health.error) == ("closed", 0, None)


# --- the line


async def test_items_are_executed_where_people_put_them_then_by_age(room: Workroom) -> None:
    for n in range(4):
        await room.come("NOW", name=f"{n}.txt")
    await room.decide()
    first, second, third, fourth = await room.items()
    await room.do(place_item, fourth, by="jana")
    await room.do(place_item, third, before=second.id, by="jana")
    order = [fourth.id, first.id, third.id, second.id]
    assert [item.id for item in await room.do(list_in_line)] == order
    room.settings = QualifierSettings(quiet=NEVER, background_at_once=1)
    await room.work()
    assert [run[0] for run in room.executor.runs] == order


async def test_urgent_items_go_before_others_of_the_same_age(room: Workroom) -> None:
    await room.come("NOW", name="a.txt")
    await room.come("HIGH", name="b.txt")
    await room.decide()
    normal, high = await room.items()
    assert [item.id for item in await room.do(list_in_line)] == [high.id, normal.id]
    await room.do(position_item, normal, 5, by="jana")
    assert [item.id for item in await room.do(list_in_line)] == [normal.id, high.id]
    await room.do(position_item, await room.item(normal.id), None, by="jana")
    await room.work()
    assert [run[0] for run in room.executor.runs] == [high.id, normal.id]


# --- silence


async def test_background_items_wait_until_nobody_has_asked_for_a_while(room: Workroom) -> None:
    room.settings = QualifierSettings(quiet=LONG)
    await room.do(announce_request, by="test")
    await a_ready_item(room)
    async with room.working():
        await room.until_state("dispatched")
        assert room.executor.runs == []
        await RequestNotes(room.db, "test").note_request()
        await room.until_state("ready_for_execution")
    (task,) = await room.rows("SELECT wait, error FROM task WHERE queue = 'background'")
    assert (task.wait, task.error) == ("time", "a person asked for something: it goes on when nobody does")


async def test_a_person_is_served_while_background_items_wait(room: Workroom) -> None:
    room.settings = QualifierSettings(quiet=LONG)
    await room.do(announce_request, by="test")
    await a_ready_item(room)
    async with room.working():
        await room.until_state("dispatched")
        wish = await room.do(add_item, GLOBAL, ItemWish("NOW", type="user_input"), by="jana")
        await room.until_state("completed", id_=wish.id)
    assert [run[0] for run in room.executor.runs] == [wish.id]


async def test_a_request_interrupts_a_background_item_which_goes_on_from_its_checkpoint(room: Workroom) -> None:
    steps: list[int] = []
    begun = asyncio.Event()

    async def work(item: WorkItem, messages: Any, checkpoint: Checkpoint) -> ExecutorResult:
        for step in range(checkpoint.done, 3):
            steps.append(step)
            await checkpoint.save(step + 1, {"words": ["one", "two", "three"][: step + 1]})
            if step == 1:
                begun.set()
                if len(steps) == 2:
                    await asyncio.Event().wait()
        return ExecutorResult(" ".join(checkpoint.data["words"]))

    room.executor.act = work
    item = await a_ready_item(room)
    async with room.working():
        await asyncio.wait_for(begun.wait(), PATIENCE)
        await RequestNotes(room.db, "test").note_request()
        await room.until_state("completed")  # it must be quiet for no time here, so it goes on at once
    assert steps == [0, 1, 2]
    assert (await room.path()).count("running") == 2
    assert (await room.do(load_result, item.id)).summary == "one two three"
    assert await room.rows("SELECT FROM item_checkpoint") == []


async def test_the_slot_of_an_interrupted_item_is_free_even_if_its_executor_does_not_listen(room: Workroom) -> None:
    begun = asyncio.Event()

    async def deaf(*_: Any) -> ExecutorResult:
        begun.set()
        while True:
            try:
                await asyncio.sleep(0.2)
                return ExecutorResult("late")
            except asyncio.CancelledError:
                continue

    room.executor.act = deaf
    await a_ready_item(room)
    async with room.working():
        await asyncio.wait_for(begun.wait(), PATIENCE)
        asked = time.perf_counter()
        await RequestNotes(room.db, "test").note_request()
        await room.until_state("ready_for_execution")
        assert time.perf_counter() - asked < PATIENCE


async def test_a_request_does_not_interrupt_what_a_person_waits_for(room: Workroom) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def work(*_: Any) -> ExecutorResult:
        begun.set()
        await go_on.wait()
        return ExecutorResult("done")

    room.executor.act = work
    wish = await room.do(add_item, GLOBAL, ItemWish("NOW", type="user_input"), by="jana")
    async with room.working():
        await asyncio.wait_for(begun.wait(), PATIENCE)
        await room.do(announce_request, by="test")
        await room.until(lambda: heard(room))
        go_on.set()
        await room.until_state("completed", id_=wish.id)
    assert len(room.executor.runs) == 1


async def heard(room: Workroom) -> bool:
    return (await room.do(load_last_request)).at is not None


async def test_an_item_that_nobody_wants_any_more_is_stopped(room: Workroom) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def work(*_: Any) -> ExecutorResult:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    room.executor.act = work
    item = await a_ready_item(room)
    async with room.working():
        await asyncio.wait_for(begun.wait(), PATIENCE)
        await room.do(cancel_item, item.id, by="jana")
        await asyncio.wait_for(ended.wait(), PATIENCE)
    assert await room.states() == ["done: cancelled"]


async def test_work_of_the_router_for_people_counts_as_a_request(room: Workroom) -> None:
    busy = [True, False]

    async def is_busy() -> bool:
        return busy.pop(0) if busy else False

    watch = RequestWatch(room.db, is_busy)
    async with watch.follow(WorkItemId(1)) as follower:
        assert await watch.wait_for_silence(follower, timedelta(0))
    assert busy == []


async def test_one_process_notes_requests_once_a_second(room: Workroom) -> None:
    notes = RequestNotes(room.db, "test")
    await notes.note_request()
    first = await room.do(load_last_request)
    await notes.note_request()
    assert (await room.do(load_last_request)).at == first.at


# --- fences and recovery


async def test_two_workers_never_claim_one_item(room: Workroom) -> None:
    item = await a_ready_item(room)
    assert item.task is not None
    claimed = await room.do(claim_item, item.id, item.task)
    assert claimed.run == 1
    assert await room.do(claim_item, item.id, TaskId(item.task + 1)) is None


async def test_a_worker_that_was_overtaken_writes_nothing(room: Workroom) -> None:
    item = await a_ready_item(room)
    slow = await room.do(claim_item, item.id, item.task)
    fast = await room.do(claim_item, item.id, item.task)  # the lease of the slow one was taken back
    make: Any = lambda item, done, data: Checkpoint(done, data)  # noqa: E731
    assert await room.do(begin_run, slow, make) is None
    assert (await room.do(begin_run, fast, make)).item.run == 2
    assert not await room.do(put_back, slow, why="too late")
    assert (await room.item()).state == "running"


async def test_an_item_whose_worker_died_goes_on_with_the_same_task(room: Workroom) -> None:
    item = await a_ready_item(room)
    make: Any = lambda item, done, data: Checkpoint(done, data)  # noqa: E731
    await room.do(begin_run, await room.do(claim_item, item.id, item.task), make)
    await room.work()
    assert await room.states() == ["completed"]
    assert "Its worker was lost." in [event.why for event in await room.events()]


@pytest.mark.parametrize(
    ("foreground", "ends_as", "state"),
    [
        (False, "completed", "ready_for_execution"),
        (True, "completed", "error"),
        (False, "failed", "error"),
        (False, "cancelled", "error"),
    ],
)
async def test_an_item_whose_task_is_gone_is_recovered(
    room: Workroom, foreground: bool, ends_as: str, state: str
) -> None:
    item = await a_ready_item(room)
    await room.do(claim_item, item.id, item.task)
    async with room.db.transaction() as tx:
        await tx.execute("DELETE FROM ticket WHERE id = %(id)s", id=item.task)
        died = "clock()" if ends_as == "failed" else "NULL"
        await tx.execute(
            f"UPDATE task SET outcome = '{ends_as}', finished_at = clock(), died_at = {died}, error = 'it broke'"
            " WHERE id = %(id)s",
            id=item.task,
        )
        await tx.execute(
            "UPDATE item SET foreground = %(foreground)s, changed_at = changed_at - interval '11 min'",
            foreground=foreground,
        )
    await room.sweep()
    assert (await room.item()).state == state


async def test_a_task_that_is_cancelled_in_the_queue_ends_its_item_in_error(room: Workroom) -> None:
    item = await a_ready_item(room)
    await room.do(cancel, [item.task])
    await room.sweep()
    found = await room.item()
    assert (found.state, found.error) == ("error", "Its task was cancelled: reopen the item to go on.")


async def test_two_engines_execute_every_item_once(room: Workroom, url: str) -> None:
    for n in range(40):
        await room.come("NOW", name=f"{n}.txt")
    async with Database(url) as second:
        other = Workroom(second, executor=Puppet())
        await asyncio.gather(room.work(), other.work())
    assert await room.states() == ["completed"] * 40
    runs = [run[0] for run in (*room.executor.runs, *other.executor.runs)]
    assert sorted(runs) == [item.id for item in await room.items()]
