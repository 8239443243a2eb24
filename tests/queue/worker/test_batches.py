"""Batches: one call for many letters, whose members succeed and fail one by one."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from crew import all_waiting, ask, never, row, sent, sent_many, set_up, until, until_status, worked, working
from engine import Bake, Grind

from gristmill.db import Database
from gristmill.errors import Overloaded, Permanent
from gristmill.queue import (
    Limit,
    Rate,
    Skip,
    current,
    on,
    why,
)
from gristmill.queue.operate.cancel import cancel

SOON = timedelta(milliseconds=1)


async def test_members_of_a_batch_succeed_and_fail_one_by_one(db: Database) -> None:
    calls: list[list[int]] = []

    async def all_of_them(letters: Sequence[Grind]) -> list[Any]:
        calls.append([letter.grain for letter in letters])
        answers: dict[int, Any] = {1: Permanent("torn"), 2: Skip("no"), 3: ValueError("odd"), 4: object()}
        return [answers.get(letter.grain, letter.grain) for letter in letters]

    ids = await sent_many(db, 8, max_attempts=1)
    await worked(db, on(Grind, all_of_them, batch=4), concurrency=1)
    assert calls == [[0, 1, 2, 3], [4, 5, 6, 7]]
    rows = [await row(db, id_) for id_ in ids]
    failed, done = "failed", "completed"
    assert [one.status for one in rows] == [done, failed, "skipped", failed, failed, done, done, done]
    assert [rows[1].error, rows[3].error, rows[7].result] == ["torn", "ValueError: odd", 7]


@pytest.mark.parametrize("process", [False, True])
async def test_where_the_whole_call_fails_each_is_called_alone(db: Database, process: bool) -> None:
    ids = await sent_many(db, 6, max_attempts=1)
    await worked(db, on(Grind, not_with_three, batch=6, process=process), concurrency=1)
    rows = [await row(db, id_) for id_ in ids]
    assert [one.status for one in rows] == ["completed"] * 3 + ["failed"] + ["completed"] * 2
    assert rows[3].error == "ValueError: three spoils it"


def not_with_three(letters: Sequence[Grind]) -> list[int]:
    if any(letter.grain == 3 for letter in letters):
        raise ValueError("three spoils it")
    return [letter.grain for letter in letters]


async def test_a_batch_that_is_not_answered_in_full_is_called_one_by_one(db: Database) -> None:
    async def forgetful(letters: Sequence[Grind]) -> list[int]:
        return [letter.grain for letter in letters][:3]

    ids = await sent_many(db, 5)
    await worked(db, on(Grind, forgetful, batch=5), concurrency=1)
    assert [(await row(db, id_)).result for id_ in ids] == [0, 1, 2, 3, 4]


async def test_a_member_that_does_not_fit_its_letter_is_buried_alone(db: Database) -> None:
    async def all_of_them(letters: Sequence[Grind]) -> list[int]:
        return [letter.grain for letter in letters]

    ids = await sent_many(db, 3)
    await ask(db, """UPDATE task SET payload = '{"grain": "x"}' WHERE id = %(id)s RETURNING id""", id=ids[1])
    await worked(db, on(Grind, all_of_them, batch=3), concurrency=1)
    assert [(await row(db, id_)).status for id_ in ids] == ["completed", "failed", "completed"]


async def test_a_member_that_is_cancelled_costs_the_others_nothing(db: Database) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(letters: Sequence[Grind]) -> list[int]:
        begun.set()
        await go.wait()
        return [letter.grain for letter in letters]

    ids = await sent_many(db, 3)
    async with working(db, on(Grind, slow, batch=3), on(Bake, never), concurrency=2):
        await begun.wait()
        other = await sent(db, Bake())
        await until_status(db, other, "processing")
        for task in (ids[1], other):  # when the second is heard of, the first has been
            async with db.transaction() as tx:
                await cancel(tx, [task])
        await until_status(db, other, "cancelled")
        go.set()
        for task, status in zip(ids, ["completed", "cancelled", "completed"], strict=True):
            await until_status(db, task, status)
    assert [(await row(db, id_)).attempts for id_ in ids] == [1, 1, 1]


async def test_what_a_batch_has_answered_is_settled_while_it_goes_on(db: Database) -> None:
    go = asyncio.Event()

    async def as_they_come(letters: Sequence[Grind]) -> AsyncIterator[tuple[int, Any]]:
        yield 1, letters[1].grain
        yield 0, Permanent("torn")
        await go.wait()
        yield 2, Skip("no")

    ids = await sent_many(db, 3)
    async with working(db, on(Grind, as_they_come, batch=3), concurrency=1):
        await until_status(db, ids[1], "completed")
        await until_status(db, ids[0], "failed")
        assert (await row(db, ids[2])).status == "processing"
        go.set()
        await until_status(db, ids[2], "skipped")


async def test_a_batch_that_breaks_off_is_called_one_by_one_for_the_rest_alone(db: Database) -> None:
    calls: list[list[int]] = []

    async def breaking(letters: Sequence[Grind]) -> AsyncIterator[tuple[int, int]]:
        calls.append([letter.grain for letter in letters])
        for place, letter in enumerate(letters):
            if letter.grain == 2:
                raise ValueError("two spoils it")
            yield place, letter.grain

    ids = await sent_many(db, 4, max_attempts=1)
    await worked(db, on(Grind, breaking, batch=4), concurrency=1)
    assert [(await row(db, id_)).status for id_ in ids] == ["completed", "completed", "failed", "completed"]
    assert calls == [[0, 1, 2, 3], [2], [3]]


async def test_nobody_is_buried_because_a_member_of_its_batch_hangs(db: Database) -> None:
    async def hang_with_three(letters: Sequence[Grind]) -> list[int]:
        if any(letter.grain == 3 for letter in letters):
            await asyncio.Event().wait()
        return [letter.grain for letter in letters]

    await set_up(db, "mill", timeout=timedelta(seconds=1), retry_base=SOON, max_attempts=2, breaker=None)
    ids = await sent_many(db, 5)
    await worked(db, on(Grind, hang_with_three, batch=5), concurrency=1)
    rows = [await row(db, id_) for id_ in ids]
    assert [one.status for one in rows] == ["completed"] * 3 + ["failed", "completed"]
    assert rows[3].error == "it took longer than 1 s"


async def test_who_hangs_when_called_alone_takes_nobody_with_it(db: Database) -> None:
    async def hang_at_one(letters: Sequence[Grind]) -> list[int]:
        if len(letters) > 1:
            raise ValueError("one by one, please")
        if letters[0].grain == 1:
            await asyncio.Event().wait()
        return [letters[0].grain]

    await set_up(db, "mill", timeout=timedelta(seconds=1), breaker=None)
    ids = await sent_many(db, 4, max_attempts=1)
    await worked(db, on(Grind, hang_at_one, batch=4), concurrency=1)
    assert [(await row(db, id_)).status for id_ in ids] == ["completed", "failed", "completed", "completed"]


async def test_a_batch_that_meets_an_overloaded_world_is_not_called_one_by_one(db: Database) -> None:
    calls: list[int] = []

    async def busy(letters: Sequence[Grind]) -> list[int]:
        calls.append(len(letters))
        raise Overloaded("429", timedelta(hours=1))

    await sent_many(db, 4)
    async with working(db, on(Grind, busy, batch=4), concurrency=1):
        await until(lambda: all_waiting(db))
    assert calls == [4]


async def test_a_generator_of_answers_is_closed_before_its_letters_are_called_again(db: Database) -> None:
    held: list[int] = []
    beside: list[int] = []

    async def confused(letters: Sequence[Grind]) -> AsyncIterator[Any]:
        beside.append(len(held))
        held.append(len(letters))
        try:
            yield 0 if len(letters) == 1 else 7, letters[0].grain
        finally:
            await asyncio.sleep(0)
            held.pop()

    ids = await sent_many(db, 2)
    await worked(db, on(Grind, confused, batch=2), concurrency=1)
    assert [(await row(db, id_)).result for id_ in ids] == [0, 1]
    assert beside == [0, 0, 0]


async def test_waiting_for_a_named_limiter_uses_no_attempt_and_says_so(db: Database) -> None:
    async def call(letter: Grind) -> None:
        async with current().take("llm", Limit(rate=Rate(1, timedelta(hours=1)))):
            pass

    ids = await sent_many(db, 3, max_attempts=1)
    async with working(db, on(Grind, call), concurrency=3):
        await until(lambda: ask(db, "SELECT 1 FROM task HAVING count(*) FILTER (WHERE wait = 'time') = 2"))
    rows = sorted([await row(db, id_) for id_ in ids], key=lambda one: one.status)
    assert [(one.status, one.attempts) for one in rows] == [("completed", 1), ("pending", 0), ("pending", 0)]
    async with db.transaction() as tx:
        told = await why(tx, rows[1].id)
    assert told.state == "snoozed"
    assert "rate-limited by llm: no turn for" in told.sentence
    assert not await ask(db, "SELECT 1 FROM task_failure")


@pytest.mark.parametrize("said", [(7, 1), (-1, 1), 1, ("a", 1), (0, 1, 2)])
async def test_an_answer_without_a_place_is_refused_with_a_sentence(db: Database, said: Any) -> None:
    async def confused(letters: Sequence[Grind]) -> AsyncIterator[Any]:
        yield said

    (task,) = await sent_many(db, 1, max_attempts=1)
    await worked(db, on(Grind, confused, batch=2), concurrency=1)
    assert "yield (place in the list, answer), each place once" in (await row(db, task)).error


def test_a_generator_of_answers_needs_a_batch() -> None:
    async def one(letters: Sequence[Grind]) -> AsyncIterator[Any]:
        yield 0, letters

    with pytest.raises(ValueError, match="say how many letters it takes"):
        on(Grind, one)
