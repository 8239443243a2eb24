"""Letters become tasks exactly as they were sent, one or thousands, or not at all."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
from engine import (
    DAY,
    MINUTE,
    Bake,
    Grind,
    audit,
    buried,
    claimed,
    ground,
    later,
    promote,
    registered,
    settled,
    status,
    statuses,
    task,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gristmill.db import Database, Tx
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.queue import Envelope, Unique, open_group, seal, send, send_many
from gristmill.queue.letters import encode
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.send import AT_ONCE, COPY_FROM, SQL


@dataclass(frozen=True)
class Note:
    """A letter with text in it."""

    kind: ClassVar[str] = "mill.note"
    text: str
    marks: tuple[str, ...] = ()


AWKWARD = [
    "",
    " ",
    "'",
    '"',
    "\\",
    "\\\\",
    "\\n",
    "\n",
    "\r\n",
    "\t",
    "\\t",
    "\\.",
    "\\N",
    "{}",
    "[1,2]",
    "null",
    "%s %(a)s",
    "žluťoučký kůň",
    "日本語",
    "👩‍🚀",
    "\u2028",
    "\x01\x1f\x7f",
    "\\u0000",
    "a" * 5000,
]


@dataclass(frozen=True)
class Addressed:
    kind: ClassVar[str] = "mill.addressed"
    queue: str


async def written(tx: Tx, ids: Sequence[TaskId]) -> list[dict[str, Any]]:
    """Everything that is kept of these tasks, except when and under which number."""
    rows = await tx.all(
        """SELECT t.*, k.id IS NOT NULL AS has_ticket, k.lane AS ticket_lane, k.queue AS ticket_queue,
                  k.attempts AS tried, k.seq = t.id AS in_order FROM task t LEFT JOIN ticket k ON k.id = t.id
            WHERE t.id = ANY (%(ids)s) ORDER BY t.id""",
        ids=ids,
    )
    return [{k: v for k, v in row._asdict().items() if k not in ("id", "created_at")} for row in rows]


async def waits(tx: Tx) -> dict[TaskId, str | None]:
    return {row.id: row.wait for row in await tx.all("SELECT id, wait FROM task ORDER BY id")}


async def count(tx: Tx) -> int:
    return await tx.value("SELECT count(*) FROM task")


# --- one and thousands


@pytest.mark.parametrize("n", [1, 2, COPY_FROM - 1, COPY_FROM, COPY_FROM + 1, AT_ONCE + 1])
async def test_any_number_of_letters_gets_ids_in_their_order(db: Database, n: int) -> None:
    async with db.transaction() as tx:
        ids = await send_many(tx, [Grind(i) for i in range(n)])
        assert ids == sorted(set(ids))
        rows = await tx.all("SELECT id, payload FROM task ORDER BY id")
        assert [(row.id, row.payload["grain"]) for row in rows] == list(zip(ids, range(n), strict=True))
        await audit(tx)


async def test_nothing_to_send_is_nothing_sent(db: Database) -> None:
    async with db.transaction() as tx:
        assert await send_many(tx, []) == []
        assert await count(tx) == 0


async def test_copied_and_inserted_letters_are_the_same_to_the_last_column(db: Database) -> None:
    async with db.transaction() as tx:
        group = await open_group(tx)
        letters = [
            Envelope(Note(text, (text,)), priority=7, foreground=True, parent=group, max_attempts=5, owner="o\\wn\ter'")
            for text in AWKWARD
        ] * (COPY_FROM // len(AWKWARD) + 1)
        copied = await written(tx, await send_many(tx, letters))
        inserted = await written(tx, [(await send_many(tx, [one]))[0] for one in letters])
        assert copied == inserted
        assert [row["payload"]["text"] for row in copied] == [one.letter.text for one in letters]  # type: ignore[attr-defined]
        await audit(tx)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    texts=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30), min_size=1, max_size=5)
)
async def test_every_text_comes_back_as_it_went(db: Database, texts: list[str]) -> None:
    async with db.transaction() as tx:
        for letters in ([Note(text) for text in texts], [Note(text) for text in texts] * COPY_FROM):
            ids = await send_many(tx, letters)
            rows = await tx.all("SELECT payload FROM task WHERE id = ANY (%(ids)s) ORDER BY id", ids=ids)
            assert [row.payload["text"] for row in rows] == [one.text for one in letters]


@pytest.mark.parametrize("text", ["\0", "a\0b", "\\\0", "\\\\\0", "u0000\0"])
@pytest.mark.parametrize("n", [1, COPY_FROM])
async def test_a_nul_character_is_refused_with_a_sentence(db: Database, text: str, n: int) -> None:
    async with db.transaction() as tx:
        with pytest.raises(Refused, match=r"mill\.note letter holds a NUL character"):
            await send_many(tx, [Note(text)] * n)
        with pytest.raises(Refused, match="NUL"):
            await send(tx, Note(text), delay=MINUTE)


@pytest.mark.parametrize("n", [1, COPY_FROM])
async def test_half_a_character_is_refused_with_a_sentence(db: Database, n: int) -> None:
    async with db.transaction() as tx:
        with pytest.raises(Refused, match="not Unicode"):
            await send_many(tx, [Note("whole")] * n + [Note("\ud800")])
        assert await count(tx) == 0


@pytest.mark.parametrize("outside", [{}, {"delay": MINUTE}])
async def test_an_oversized_payload_is_refused_with_what_to_do(db: Database, outside: dict[str, Any]) -> None:
    async with db.transaction() as tx:
        with pytest.raises(
            Refused, match=r"1,000,0\d\d bytes is too large .limit 1,000,000.: store the data and send its id"
        ):
            await send(tx, Note("a" * 1_000_000), **outside)
        for n in (0, COPY_FROM):
            with pytest.raises(Refused, match="limit 100"):
                await send_many(tx, [Note("a")] * n + [Note("a" * 100)], max_payload=100)
        assert await count(tx) == 0


@pytest.mark.parametrize("name", ["", "Mill", "a b", "-a", "ä", "a" * 64, "a\tb"])
async def test_an_impossible_name_of_a_queue_is_refused(db: Database, name: str) -> None:
    async with db.transaction() as tx:
        if not name:
            assert (await task(tx, await send(tx, Grind(), queue=name))).queue == "mill"
            return
        with pytest.raises(Refused, match="no name for a queue"):
            await send(tx, Grind(), queue=name)


async def test_a_letter_may_go_to_another_queue_than_its_own(db: Database) -> None:
    async with db.transaction() as tx:
        assert (await task(tx, await send(tx, Grind(), queue="special"))).queue == "special"
        assert {row.name for row in await tx.all("SELECT name FROM queue")} == {"special"}


@pytest.mark.parametrize("n", [3, COPY_FROM])
async def test_letters_that_name_their_queue_themselves_each_go_to_theirs(db: Database, n: int) -> None:
    wanted = [f"mill-{number % 3}" for number in range(n)]
    async with db.transaction() as tx:
        ids = await send_many(tx, [Addressed(queue) for queue in wanted])
        rows = await tx.all("SELECT id, queue FROM task ORDER BY id")
    assert [(row.id, row.queue) for row in rows] == list(zip(ids, wanted, strict=True))


async def test_letters_of_many_kinds_keep_their_order(db: Database) -> None:
    async with db.transaction() as tx:
        letters = [Bake(i) if i % 3 else Envelope(Grind(i), delay=MINUTE if i % 2 else None) for i in range(30)]
        ids = await send_many(tx, letters)
        assert ids == sorted(ids)
        rows = await tx.all("SELECT id, kind, payload FROM task ORDER BY id")
        assert [row.kind for row in rows] == ["oven.bake" if i % 3 else "mill.grind" for i in range(30)]
        assert [next(iter(row.payload.values())) for row in rows] == list(range(30))


# --- inside the caller's transaction


@pytest.mark.parametrize("n", [1, COPY_FROM])
async def test_a_rollback_leaves_nothing(db: Database, n: int) -> None:
    async def fail() -> None:
        async with db.transaction() as tx:
            group = await open_group(tx)
            await send_many(tx, [Envelope(Grind(i), parent=group) for i in range(n)])
            await send(tx, Grind(), unique=Unique("key"), serial_key="s")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    async with db.transaction() as tx:
        for table in ("task", "ticket", "task_group", "serial_head", "queue"):
            assert await tx.value(f"SELECT count(*) FROM {table}") == 0, table


async def test_workers_are_told_once_for_thousands_and_only_at_commit(db: Database) -> None:
    listener = await db.connect("test")
    await listener.execute("LISTEN gristmill")
    async with db.transaction() as tx:
        ids = await send_many(tx, [Grind(i) for i in range(1000)])
        assert [note async for note in listener.notifies(timeout=0.05)] == []
    heard = [note.payload async for note in listener.notifies(timeout=60, stop_after=1)]
    heard += [note.payload async for note in listener.notifies(timeout=0.05)]
    await listener.close()
    assert len(heard) == 1
    assert heard[0].startswith("ready mill ")
    assert heard[0].endswith(f" {ids[0]}")


# --- when and in which order


async def test_a_naive_time_is_refused() -> None:
    with pytest.raises(Refused, match="time zone"):
        Envelope(Grind(), run_at=datetime(2030, 1, 1))  # noqa: DTZ001 that is the point


@pytest.mark.parametrize("priority", [-101, 101, 1000])
def test_a_priority_out_of_range_is_refused(priority: int) -> None:
    with pytest.raises(Refused, match="from -100 to 100"):
        Envelope(Grind(), priority=priority)


@pytest.mark.parametrize("n", [0, -1, 1001])
def test_an_impossible_number_of_attempts_is_refused(n: int) -> None:
    with pytest.raises(Refused, match="from 1 to 1000"):
        Envelope(Grind(), max_attempts=n)


@pytest.mark.parametrize("when", [{"delay": MINUTE}, {"run_at": "soon"}])
async def test_a_scheduled_letter_enters_the_line_when_its_time_has_come(db: Database, when: dict[str, Any]) -> None:
    async with db.transaction() as tx:
        now = await tx.value("SELECT clock()")
        id_ = await send(tx, Grind(), **(when if "delay" in when else {"run_at": now + MINUTE}))
        assert await waits(tx) == {id_: "time"}
        assert await ground(tx) == []
        await promote(tx, 10)
        assert await ground(tx) == []
    async with later(db, 2 * MINUTE) as tx:
        assert await promote(tx, 10) == 1
        assert await ground(tx) == [id_]
        await audit(tx)


async def test_a_time_that_has_passed_is_now(db: Database) -> None:
    async with db.transaction() as tx:
        id_ = await send(tx, Grind(), run_at=datetime(2020, 1, 1, tzinfo=UTC))
        assert await ground(tx) == [id_]


async def test_position_foreground_and_priority_are_kept_and_heeded(db: Database) -> None:
    async with db.transaction() as tx:
        plain = await send(tx, Grind())
        urgent = await send(tx, Grind(), priority=100)
        people = await send(tx, Grind(), foreground=True, priority=-100)
        placed = await send(tx, Grind(), position=5, priority=-100)
        first = await send(tx, Grind(), position=-3)
        row = await task(tx, people)
        assert (row.foreground, row.priority, row.position) == (True, -100, None)
        assert (await task(tx, placed)).position == 5
        assert await ground(tx, 9) == [first, placed, people, urgent, plain]


# --- unique keys


@pytest.mark.parametrize("n", [1, COPY_FROM])
async def test_a_taken_key_is_ignored_and_its_holder_named(db: Database, n: int) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), unique=Unique("key"))
        others = await send_many(tx, [Envelope(Grind(2), unique=Unique("key"))] * n)
        assert others == [first] * n
        assert (await task(tx, first)).payload == {"grain": 1}
        assert await count(tx) == 1
        await audit(tx)


async def test_a_taken_key_is_an_error_where_asked(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), unique=Unique("key"))
        with pytest.raises(Refused, match=f"“key” is taken by task {first}"):
            await send(tx, Grind(2), unique=Unique("key", "error"))


async def test_a_newer_letter_replaces_the_one_that_waits(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), unique=Unique("key"))
        other = await send(tx, Grind(9))
        assert await send(tx, Grind(2), unique=Unique("key", "replace"), priority=3) == first
        row = await task(tx, first)
        assert (row.payload, row.priority) == ({"grain": 2}, 3)
        assert await ground(tx, 9) == [first, other]
        await audit(tx)


async def test_a_replacement_may_be_of_another_kind_and_for_later(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), unique=Unique("key"))
        assert await send(tx, Bake(2), unique=Unique("key", "replace"), delay=MINUTE, max_attempts=7) == first
        row = await task(tx, first)
        assert (row.queue, row.kind, row.payload, row.wait, row.max_attempts) == (
            "oven",
            "oven.bake",
            {"loaf": 2},
            "time",
            7,
        )
        assert await send(tx, Grind(3), unique=Unique("key", "replace")) == first
        assert await ground(tx) == [first]
        await audit(tx)


async def test_what_runs_is_not_replaced(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), unique=Unique("key"))
        worker = await registered(tx)
        claims = await claimed(tx, worker)
        assert await send(tx, Grind(2), unique=Unique("key", "replace")) == first
        assert (await task(tx, first)).payload == {"grain": 1}
        await settled(tx, worker, claims)
        assert await send(tx, Grind(2), unique=Unique("key", "replace")) > first
        await audit(tx)


async def test_what_waits_for_another_keeps_waiting_when_replaced(db: Database) -> None:
    async with db.transaction() as tx:
        before = await send(tx, Bake())
        first = await send(tx, Grind(1), unique=Unique("key"), after=before)
        assert await send(tx, Grind(2), unique=Unique("key", "replace")) == first
        assert await ground(tx) == []
        await ground(tx, queues=["oven"])
        assert await ground(tx) == [first]
        assert (await task(tx, first)).payload == {"grain": 2}


@pytest.mark.parametrize("end", [ground, buried])
async def test_a_key_is_free_again_when_its_task_has_ended(db: Database, end: Any) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), unique=Unique("key"))
        assert await end(tx) == [first]
        assert await send(tx, Grind(2), unique=Unique("key", "error")) > first


async def test_a_key_is_free_again_when_its_task_was_cancelled(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), unique=Unique("key", period=DAY))
        await cancel(tx, [first])
        assert await send(tx, Grind(2), unique=Unique("key", "error")) > first


async def test_within_a_period_a_key_outlives_its_task(db: Database) -> None:
    once = Unique("key", period=DAY)
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), unique=once)
        await ground(tx)
        assert await send(tx, Grind(2), unique=once) == first
        assert await send(tx, Grind(2), unique=Unique("key", "replace")) == first
        assert await status(tx, first) == "completed"
    async with later(db, 2 * DAY) as tx:
        assert await send(tx, Grind(3), unique=once) > first
        await audit(tx)


async def test_past_its_period_a_key_is_held_as_long_as_its_task_is_open(db: Database) -> None:
    once = Unique("key", period=MINUTE)
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), unique=once)
    async with later(db, DAY) as tx:
        assert await send(tx, Grind(2), unique=once) == first


async def test_of_duplicates_in_one_batch_the_first_is_written(db: Database) -> None:
    async with db.transaction() as tx:
        ids = await send_many(
            tx, [Envelope(Grind(i), unique=Unique(key)) for i, key in enumerate(["b", "a", "b", "c", "a", "b"])]
        )
        assert [ids[0], ids[1]] == [ids[2], ids[4]] == [ids[5], ids[1]]
        rows = await tx.all("SELECT unique_key, payload FROM task ORDER BY unique_key")
        assert [(row.unique_key, row.payload["grain"]) for row in rows] == [("a", 1), ("b", 0), ("c", 3)]


async def test_of_replacing_duplicates_in_one_batch_the_last_counts(db: Database) -> None:
    async with db.transaction() as tx:
        ids = await send_many(tx, [Envelope(Grind(i), unique=Unique("a", "replace")) for i in range(3)])
        assert len(set(ids)) == 1
        assert (await task(tx, ids[0])).payload == {"grain": 2}
        assert await count(tx) == 1
        await audit(tx)


async def test_a_letter_that_was_not_written_does_not_count_in_its_group(db: Database) -> None:
    async with db.transaction() as tx:
        group = await open_group(tx)
        await send_many(tx, [Envelope(Grind(i), unique=Unique("a"), parent=group) for i in range(3)])
        await seal(tx, group)
        await ground(tx, 9)
        assert await status(tx, group) == "completed"
        await audit(tx)


async def test_senders_with_the_same_keys_do_not_wait_in_a_circle(db: Database) -> None:
    keys = [f"key {i}" for i in range(50)]

    async def sender(order: Sequence[str], n: int) -> list[TaskId]:
        async with db.transaction() as tx:
            return await send_many(tx, [Envelope(Grind(n), unique=Unique(key)) for key in order])

    sent = await asyncio.gather(*(sender(keys if n % 2 else keys[::-1], n) for n in range(8)))
    assert all(ids == sent[1] for ids in sent[1::2])
    assert all(ids == sent[1][::-1] for ids in sent[0::2])
    async with db.transaction() as tx:
        assert await count(tx) == len(keys)
        await audit(tx)


async def test_senders_race_workers_for_one_key_and_each_letter_is_either_held_or_written(db: Database) -> None:
    over = asyncio.Event()

    async def work() -> None:
        while not over.is_set():
            async with db.transaction() as tx:
                await ground(tx, 5)

    async def sender(conflict: Any) -> list[TaskId]:
        ids: list[TaskId] = []
        for i in range(60):
            async with db.transaction() as tx:
                ids.append(await send(tx, Grind(i), unique=Unique("key", conflict)))
        return ids

    working = asyncio.create_task(work())
    sent = await asyncio.gather(sender("ignore"), sender("replace"), sender("replace"))
    over.set()
    await working
    async with db.transaction() as tx:
        await ground(tx, 5)
        known = await statuses(tx)
        assert {id_ for ids in sent for id_ in ids} == set(known)
        assert set(known.values()) == {"completed"}
        await audit(tx)


async def test_a_holder_that_ends_between_two_statements_frees_the_key_for_us(db: Database, monkeypatch: Any) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), unique=Unique("key"))
    all_of, ended = Tx.all, False

    async def meanwhile(self: Tx, query: Any, *row: Any, **params: Any) -> Any:
        nonlocal ended
        if query == SQL["holders"] and not ended:
            ended = True
            async with db.transaction() as other:
                await ground(other)
        return await all_of(self, query, *row, **params)

    monkeypatch.setattr(Tx, "all", meanwhile)
    async with db.transaction() as tx:
        second = await send(tx, Grind(2), unique=Unique("key"))
        assert second > first
        assert await statuses(tx) == {first: "completed", second: "pending"}
        await audit(tx)


async def test_a_holder_that_is_claimed_while_we_replace_it_keeps_its_letter(db: Database, monkeypatch: Any) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1), unique=Unique("key"))
    one_of = Tx.one

    async def meanwhile(self: Tx, query: Any, *given: Any, **params: Any) -> Any:
        if query == SQL["replace"]:
            monkeypatch.undo()
            async with db.transaction() as other:
                assert len(await claimed(other, await registered(other))) == 1
        return await one_of(self, query, *given, **params)

    monkeypatch.setattr(Tx, "one", meanwhile)
    async with db.transaction() as tx:
        assert await send(tx, Grind(2), unique=Unique("key", "replace")) == first
        assert (await task(tx, first)).payload == {"grain": 1}
        await audit(tx)


# --- after another


async def test_what_comes_after_a_task_waits_for_it(db: Database) -> None:
    async with db.transaction() as tx:
        before = await send(tx, Bake())
        after = await send(tx, Grind(), after=before)
        assert (await waits(tx))[after] == "after"
        assert await ground(tx) == []
        await ground(tx, queues=["oven"])
        assert await ground(tx) == [after]
        await audit(tx)


async def test_what_comes_after_a_done_task_need_not_wait(db: Database) -> None:
    async with db.transaction() as tx:
        before = await send(tx, Bake())
        await ground(tx, queues=["oven"])
        after = await send(tx, Grind(), after=before)
        assert await ground(tx) == [after]


async def test_what_comes_after_a_failed_task_waits_until_that_is_retried(db: Database) -> None:
    async with db.transaction() as tx:
        before = await send(tx, Bake())
        await buried(tx, queues=["oven"])
        after = await send(tx, Grind(), after=before)
        assert await status(tx, after) == "pending"
        assert await ground(tx) == []
        await audit(tx)


async def test_nothing_can_come_after_a_cancelled_or_missing_task(db: Database) -> None:
    async with db.transaction() as tx:
        before = await send(tx, Bake())
        await cancel(tx, [before])
        with pytest.raises(Refused, match=f"Task {before} was cancelled: nothing can come after it"):
            await send(tx, Grind(), after=before)
        with pytest.raises(Refused, match="There is no task 999999 to come after"):
            await send(tx, Grind(), after=TaskId(999999))


async def test_a_task_that_is_cancelled_takes_those_after_it_along(db: Database) -> None:
    async with db.transaction() as tx:
        before = await send(tx, Bake())
        second = await send(tx, Grind(), after=before)
        third = await send(tx, Grind(), after=second)
        await cancel(tx, [before])
        assert set((await statuses(tx)).values()) == {"cancelled"}
        assert f"task {second}, which it waited for, was cancelled" in (await task(tx, third)).error
        await audit(tx)


@pytest.mark.parametrize("sealed", [True, False])
async def test_what_comes_after_a_group_waits_for_all_of_it(db: Database, sealed: bool) -> None:
    async with db.transaction() as tx:
        group = await open_group(tx)
        await send_many(tx, [Envelope(Bake(i), parent=group) for i in range(3)])
        after = await send(tx, Grind(), after=group)
        if sealed:
            await seal(tx, group)
        await ground(tx, 2, queues=["oven"])
        assert await ground(tx) == []
        await ground(tx, 2, queues=["oven"])
        if not sealed:
            assert await ground(tx) == []
            await seal(tx, group)
        assert await ground(tx) == [after]
        await audit(tx)


async def test_after_and_a_later_time_both_hold(db: Database) -> None:
    async with db.transaction() as tx:
        before = await send(tx, Bake())
        after = await send(tx, Grind(), after=before, delay=MINUTE)
        await ground(tx, queues=["oven"])
        assert (await waits(tx))[after] == "time"
    async with later(db, DAY) as tx:
        await promote(tx, 10)
        assert await ground(tx) == [after]


@pytest.mark.parametrize("already_awaited", [False, True])
async def test_a_task_that_ends_while_another_is_sent_after_it_does_not_strand_it(
    db: Database, already_awaited: bool
) -> None:
    async with db.transaction() as tx:
        before = await send(tx, Bake())
        if already_awaited:
            await send(tx, Grind(1), after=before)
        worker = await registered(tx, "oven")
        claims = await claimed(tx, worker, queues=["oven"])

    async def finish() -> None:
        async with db.transaction() as tx:
            await settled(tx, worker, claims)

    async with db.transaction() as tx:
        after = await send(tx, Grind(2), after=before)
        finishing = asyncio.create_task(finish())
        with suppress(TimeoutError):  # it may not end before we do: a moment is all it would need
            await asyncio.wait_for(asyncio.shield(finishing), 0.2)
    await finishing
    async with db.transaction() as tx:
        assert after in await ground(tx, 9)
        await audit(tx)


# --- groups and serial keys


async def test_a_sealed_or_missing_group_takes_no_children(db: Database) -> None:
    async with db.transaction() as tx:
        group = await open_group(tx)
        await seal(tx, group)
        no_group = await send(tx, Grind())
        for unique in (None, Unique("key")):
            with pytest.raises(Refused, match=f"Group {group} is sealed"):
                await send(tx, Grind(), parent=group, unique=unique)
        with pytest.raises(Refused, match=f"There is no group {no_group}"):
            await send(tx, Grind(), parent=no_group)
        with pytest.raises(Refused, match="There is no group 999999"):
            await open_group(tx, parent=TaskId(999999))
        with pytest.raises(Refused, match="There is no group 999999"):
            await seal(tx, TaskId(999999))


async def test_only_the_head_of_a_serial_key_is_in_line(db: Database) -> None:
    async with db.transaction() as tx:
        a = await send_many(tx, [Envelope(Grind(i), serial_key="a") for i in range(3)])
        b = await send(tx, Grind(), serial_key="b")
        assert await waits(tx) == {a[0]: None, a[1]: "serial", a[2]: "serial", b: None}
        assert [await ground(tx, 9) for _ in range(4)] == [[a[0], b], [a[1]], [a[2]], []]
        assert await tx.value("SELECT count(*) FROM serial_head") == 0
        await audit(tx)


async def test_the_next_of_a_serial_key_is_the_most_urgent(db: Database) -> None:
    async with db.transaction() as tx:
        first, second = await send_many(tx, [Envelope(Grind(i), serial_key="a") for i in range(2)])
        people = await send(tx, Grind(), serial_key="a", foreground=True)
        assert [await ground(tx, 9) for _ in range(3)] == [[first], [people], [second]]


async def test_a_failed_task_does_not_block_its_serial_key(db: Database) -> None:
    async with db.transaction() as tx:
        first, second = await send_many(tx, [Envelope(Grind(i), serial_key="a") for i in range(2)])
        assert await buried(tx, 9) == [first]
        assert await ground(tx, 9) == [second]
        await audit(tx)


async def test_a_scheduled_task_stands_behind_the_others_of_its_serial_key_when_its_time_comes(db: Database) -> None:
    async with db.transaction() as tx:
        scheduled = await send(tx, Grind(0), serial_key="a", delay=MINUTE)
        first, second = await send_many(tx, [Envelope(Grind(i), serial_key="a") for i in range(2)])
        await audit(tx)
    async with later(db, 2 * MINUTE) as tx:
        await promote(tx, 10)
        assert await waits(tx) == {scheduled: "serial", first: None, second: "serial"}
        await audit(tx)
        assert [await ground(tx, 9) for _ in range(3)] == [[first], [scheduled], [second]]


async def test_senders_of_one_serial_key_agree_on_its_head(db: Database) -> None:
    async def sender(n: int) -> None:
        async with db.transaction() as tx:
            await send_many(tx, [Envelope(Grind(n), serial_key=key) for key in ("a", "b")[:: 1 if n % 2 else -1]])

    await asyncio.gather(*(sender(n) for n in range(12)))
    async with db.transaction() as tx:
        await audit(tx)
        worker = await registered(tx)
        for _ in range(12):
            claims = await claimed(tx, worker, 9)
            assert len(claims) == 2
            await settled(tx, worker, claims)
        assert set((await statuses(tx)).values()) == {"completed"}


def test_the_sentence_about_a_nul_is_not_shown_for_its_escaped_name() -> None:
    assert json.loads(encode(Note("\\u0000"), 1000))["text"] == "\\u0000"


async def test_letters_of_many_owners_and_groups_are_sent_as_if_one_by_one(db: Database) -> None:
    async with db.transaction() as tx:
        groups = [await open_group(tx) for _ in range(4)]
        sent = [
            Envelope(Grind(n), parent=groups[n % 4], owner=f"document:{n}", priority=n % 3, foreground=n % 2 == 0)
            for n in range(12)
        ]
        ids = await send_many(tx, sent)
        rows = [await task(tx, id_) for id_ in ids]
        assert ids == sorted(ids)
        assert [(row.payload["grain"], row.parent, row.owner, row.priority, row.foreground) for row in rows] == [
            (n, groups[n % 4], f"document:{n}", n % 3, n % 2 == 0) for n in range(12)
        ]
        assert len(await ground(tx, 12)) == 12
        for group in groups:
            await seal(tx, group)
            assert await status(tx, group) == "completed"
        await audit(tx)
