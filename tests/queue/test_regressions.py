"""What a stern reading once found: each test is a fault that was there, told as the behaviour that replaced it."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from crew import QUICK, ask, sent, set_up, until, until_status, worked, working
from engine import (
    LEASE,
    MINUTE,
    Bake,
    Grind,
    audit,
    claimed,
    claimed_suspect,
    later,
    promote,
    registered,
    settled,
    status,
    task,
    travel,
)
from structlog.testing import capture_logs

from gristmill.db import Database, Tx
from gristmill.errors import LeaseLost, Refused, Unreachable
from gristmill.ids import TaskId
from gristmill.queue import Done, Envelope, Unique, journal, on, open_group, send, send_many
from gristmill.queue.claim import Claim
from gristmill.queue.letters import lane_of
from gristmill.queue.operate.cancel import cancel
from gristmill.queue.upkeep import maintenance
from gristmill.queue.upkeep.rescuer import rescue
from gristmill.queue.worker import settler
from gristmill.queue.worker.claimer import Claimer
from gristmill.queue.worker.lane_marks import LAST, Lane, LaneMarks
from gristmill.queue.worker.shift import Shift
from gristmill.queue.worker.workload import Workload

NORMAL, PEOPLE = lane_of(None, 0, False), lane_of(None, 0, True)
DEAD = LEASE * 2


async def nothing(letter: Grind) -> None:
    pass


async def made_suspects(db: Database, *letters: Grind) -> list[TaskId]:
    async with db.transaction() as tx:
        ids = await send_many(tx, letters)
        await tx.execute("UPDATE ticket SET suspect = true")
    return ids


async def blocked(db: Database) -> list[Any]:
    """Sessions of this database that wait for a lock."""
    return await ask(
        db, "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )


async def beside(db: Database, holder: Callable[[Tx], Awaitable[Any]], other: Callable[[Tx], Awaitable[Any]]) -> Any:
    """What comes of `other` if it meets the locks of `holder`, which commits once the other waits for it."""

    async def second() -> Any:
        async with db.transaction() as tx:
            return await other(tx)

    async with db.transaction() as tx:
        await holder(tx)
        await tx.flush()
        waiting = asyncio.create_task(second())

        async def waits() -> bool:
            return waiting.done() or bool(await blocked(db))

        await until(waits, "the other waits")
        assert not waiting.done(), waiting
    return await waiting


# --- series and cancels


async def test_a_task_cancelled_while_its_prerequisite_ends_never_becomes_the_head_of_its_series(db: Database) -> None:
    async with db.transaction() as tx:
        first = await send(tx, Grind(1))
        second = await send(tx, Grind(2), after=first, serial_key="wheel")
        worker = await registered(tx)
        claims = await claimed(tx, worker)
    await beside(db, lambda tx: cancel(tx, [second]), lambda tx: settled(tx, worker, claims))
    async with db.transaction() as tx:
        third = await send(tx, Grind(3), serial_key="wheel")
        await audit(tx)
        assert [one.id for one in await claimed(tx, worker)] == [third]


async def test_a_task_cancelled_while_its_turn_comes_hands_its_series_on(db: Database) -> None:
    async with db.transaction() as tx:
        _, second, third = await send_many(tx, [Envelope(Grind(i), serial_key="wheel") for i in range(3)])
        worker = await registered(tx)
        claims = await claimed(tx, worker)
    await beside(db, lambda tx: settled(tx, worker, claims), lambda tx: cancel(tx, [second]))
    async with db.transaction() as tx:
        await audit(tx)
        assert await status(tx, second) == "cancelled"
        assert [one.id for one in await claimed(tx, worker)] == [third]


async def test_a_series_passes_over_a_task_that_is_being_cancelled(db: Database) -> None:
    async with db.transaction() as tx:
        _, second, third = await send_many(tx, [Envelope(Grind(i), serial_key="wheel") for i in range(3)])
        worker = await registered(tx)
        claims = await claimed(tx, worker)
    await beside(db, lambda tx: cancel(tx, [second]), lambda tx: settled(tx, worker, claims))
    async with db.transaction() as tx:
        await audit(tx)
        assert [one.id for one in await claimed(tx, worker)] == [third]


async def test_a_cancel_is_not_lost_to_a_promotion(db: Database) -> None:
    async with db.transaction() as tx:
        due = await send(tx, Grind(1), delay=MINUTE)
        worker = await registered(tx)
    claiming: list[asyncio.Task[list[Claim]]] = []

    async def claim() -> list[Claim]:
        async with db.transaction() as tx:
            return await claimed(tx, worker)

    class Watched:
        """A transaction in which somebody claims right before the running are asked."""

        def __init__(self, tx: Tx) -> None:
            self._tx = tx

        async def values(self, query: Any, kind: Any, **params: Any) -> Any:
            if "SET cancel = true" in str(query):
                claiming.append(asyncio.create_task(claim()))
                await claiming[0]
            return await self._tx.values(query, kind, **params)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._tx, name)

    async def promote_later(tx: Tx) -> None:
        await travel(tx, MINUTE * 2)
        assert await promote(tx, 10) == 1

    await beside(db, promote_later, lambda tx: cancel(cast("Tx", Watched(tx)), [due]))
    assert await claiming[0] == []
    async with db.transaction() as tx:
        await audit(tx)
        assert await status(tx, due) == "cancelled"


# --- suspects


def test_hands_that_hold_one_alone_take_no_other_until_it_is_settled() -> None:
    claim = Claim(TaskId(1), 1, NORMAL, "mill", 1, "mill.grind", "{}", None, True)
    workload = Workload(1, 100, alone=True)
    workload.pace.note(1_000_000)
    assert workload.to_claim() == 1
    workload.accept([claim])
    assert workload.to_claim() == 0
    workload.take_unstarted()
    workload.running[claim.id] = claim
    assert workload.to_claim() == 0
    workload.running.clear()
    workload.answers.append((claim, Done()))
    assert workload.to_claim() == 0
    workload.answers.clear()
    assert workload.to_claim() == 1


@pytest.mark.parametrize("options", [{"solo": True}, {}], ids=["solo", "without a supervisor"])
async def test_a_suspect_is_settled_before_the_next_is_claimed(
    db: Database, options: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    leased: list[int] = []
    asked = 0
    to_claim = Workload.to_claim

    def counting(workload: Workload) -> int:
        nonlocal asked
        asked += 1
        return to_claim(workload)

    async def asked_more_than(n: int) -> bool:
        return asked > n

    async def grind(letter: Grind) -> Done:
        async def write(tx: Tx) -> None:
            await until(partial(asked_more_than, asked), "the worker asks what to claim while this is being settled")
            leased.append(len(await ask(db, "SELECT 1 FROM ticket WHERE worker IS NOT NULL")))

        return Done(write)

    monkeypatch.setattr(Workload, "to_claim", counting)
    ids = await made_suspects(db, *[Grind(i) for i in range(3)])
    await worked(db, on(Grind, grind), **options)
    assert leased == [1, 1, 1]
    async with db.transaction() as tx:
        assert [await status(tx, one) for one in ids] == ["completed"] * 3


async def test_a_worker_without_a_supervisor_runs_suspects_when_it_is_idle_and_then_ends(db: Database) -> None:
    order: list[int] = []

    async def grind(letter: Grind) -> None:
        order.append(letter.grain)

    await made_suspects(db, Grind(1), Grind(2))
    await sent(db, Grind(0))
    await worked(db, on(Grind, grind))
    assert order == [0, 1, 2]
    async with db.transaction() as tx:
        await audit(tx)


async def test_a_supervised_worker_leaves_suspects_to_others(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    chances = 0  # claims after which a worker without a supervisor would take a suspect
    claim = Claimer.claim

    async def counting(claimer: Claimer, *asked: Any) -> list[Claim]:
        nonlocal chances
        free = claimer._looked and claimer._workload.empty  # pyright: ignore[reportPrivateUsage]
        claims = await claim(claimer, *asked)
        chances += free and not claims
        return claims

    async def had_chances() -> bool:
        return chances >= 3

    monkeypatch.setattr(Claimer, "claim", counting)
    (suspect,) = await made_suspects(db, Grind(1))
    async with working(db, on(Grind, nothing), supervised=True):
        await until_status(db, await sent(db, Grind(2)), "completed")
        await until(had_chances, "the worker is idle")
    assert await ask(db, "SELECT id, attempts, worker FROM ticket") == [(suspect, 0, None)]


async def test_a_lone_task_whose_worker_only_fell_silent_is_not_buried(db: Database) -> None:
    async with db.transaction() as tx:
        lone = await send(tx, Grind(1), max_attempts=3)
        await tx.execute("UPDATE ticket SET attempts = 2")
        await claimed(tx, await registered(tx))
    async with later(db, DEAD) as tx:
        await rescue(tx, read=lambda _: None)
        assert await status(tx, lone) == "pending"
        assert await claimed_suspect(tx, await registered(tx, solo=True)) is not None
    async with later(db, DEAD * 2) as tx:  # again, and now it was a suspect: the machine may just sleep often
        await rescue(tx, read=lambda _: None)
        assert await status(tx, lone) == "pending"


# --- settling


async def test_a_bare_done_that_waits_for_a_lock_of_its_group_is_never_blamed(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settler, "STATEMENT_LIMIT", 0.1)
    begun, go = asyncio.Event(), asyncio.Event()

    async def grind(letter: Grind) -> None:
        begun.set()
        await go.wait()

    async with db.transaction() as tx:
        group = await open_group(tx)
        (child,) = await send_many(tx, [Envelope(Grind(1), parent=group, max_attempts=1)])
    with capture_logs() as logs:

        async def tried_alone() -> bool:
            return sum("not settled after" in str(line) for line in logs) > 1  # the first time, in a batch

        async with working(db, on(Grind, grind)):
            await begun.wait()
            async with db.transaction() as tx:
                await send_many(tx, [Envelope(Bake(2), parent=group)])
                await tx.flush()
                go.set()
                await until(tried_alone, "it was settled by itself, too")
                for one in await blocked(db):  # what was given up would otherwise still be written when we commit
                    await ask(db, "SELECT pg_terminate_backend(%(pid)s)", pid=one.pid)
            row = await until_status(db, child, "completed", "failed")
    assert (row.status, row.error) == ("completed", None)
    assert await ask(db, "SELECT 1 FROM task_failure") == []


async def test_the_write_of_a_task_that_lost_its_lease_is_not_even_called(db: Database) -> None:
    called: list[Tx] = []

    async def write(tx: Tx) -> None:
        called.append(tx)

    async with db.transaction() as tx:
        await send(tx, Grind(1))
        worker = await registered(tx)
        claims = await claimed(tx, worker)
    async with later(db, DEAD) as tx:
        await rescue(tx, read=lambda _: frozenset())
    with pytest.raises(LeaseLost):
        async with db.transaction() as tx:
            await settled(tx, worker, claims, Done(write))
    assert called == []


async def test_attempts_may_go_beyond_what_a_small_number_holds(db: Database) -> None:
    await set_up(
        db, "mill", max_attempts=None, retry_base=timedelta(milliseconds=1), retry_cap=timedelta(milliseconds=1)
    )
    tries: list[int] = []

    async def grind(letter: Grind) -> None:
        tries.append(letter.grain)
        if len(tries) < 3:
            raise ValueError("too hard")

    old = await sent(db, Grind(1))
    await ask(db, "UPDATE ticket SET attempts = 32766 RETURNING 1")
    await worked(db, on(Grind, grind))
    async with db.transaction() as tx:
        row = await task(tx, old)
    assert (row.status, row.attempts) == ("completed", 32769)
    failures = await ask(db, "SELECT attempt FROM task_failure ORDER BY attempt")
    assert [one.attempt for one in failures] == [32767, 32768]


# --- the life of a worker


async def test_a_handler_that_wants_to_end_the_process_fails_its_task_alone(db: Database) -> None:
    async def grind(letter: Grind) -> None:
        if letter.grain == 0:
            raise SystemExit(3)

    async with db.transaction() as tx:
        rude, kind = await send_many(tx, [Envelope(Grind(i), max_attempts=1) for i in range(2)])
    await worked(db, on(Grind, grind))
    async with db.transaction() as tx:
        assert await status(tx, kind) == "completed"
        row = await task(tx, rude)
        assert (row.status, "SystemExit: 3" in row.error) == ("failed", True)


async def test_one_broken_duty_does_not_end_the_others(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    rescues: list[Database] = []

    async def broken(*_: Any) -> None:
        raise ValueError("a fault of the janitor")

    async def take_back(at: Database) -> None:
        rescues.append(at)

    async def often() -> bool:
        return len(rescues) > 4

    monkeypatch.setattr(maintenance, "clean", broken)
    monkeypatch.setattr(maintenance, "take_back", take_back)
    quick = QUICK.model_copy(update={"rescue": timedelta(milliseconds=20)})
    with capture_logs() as logs:
        async with working(db, on(Grind, nothing), settings=quick, maintenance=True):
            await until(often, "rescues go on")
            await until_status(db, await sent(db, Grind(1)), "completed")
    assert [line["duty"] for line in logs if line["event"] == "maintenance.broken"] == ["janitor"]


async def test_a_person_overtakes_the_background_of_a_limited_queue(db: Database) -> None:
    order: list[str] = []

    async def grind(letter: Grind) -> None:
        order.append("background")
        await asyncio.sleep(0.01)

    async def bake(letter: Bake) -> None:
        order.append("person")

    await set_up(db, "mill", concurrency=50)
    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(20)])
        await send_many(tx, [Envelope(Bake(1), foreground=True)])
    await worked(db, on(Grind, grind), on(Bake, bake), concurrency=1)
    assert order.index("person") < 3, order


async def test_an_outage_of_the_database_costs_a_handler_no_attempt(db: Database) -> None:
    calls = 0

    async def grind(letters: Sequence[Grind]) -> list[None]:
        nonlocal calls
        calls += 1
        async with db.transaction() as tx:
            if calls == 1:
                await tx.one("SELECT pg_terminate_backend(pg_backend_pid())")
        return [None] * len(letters)

    async with db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(3)])
    await worked(db, on(Grind, grind, batch=8))
    assert calls == 2, "they are not tried one by one either"
    assert await ask(db, "SELECT outcome, attempts, error FROM task") == [("completed", 1, None)] * 3


async def test_what_could_not_be_given_back_at_a_stop_is_not_suspected(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def grind(letter: Grind) -> None:
        begun.set()
        await go.wait()

    async def away(self: Shift, claims: Sequence[Claim]) -> None:
        if claims:
            raise Unreachable("away just now")

    def three(self: Workload) -> int:
        return 3

    monkeypatch.setattr(Shift, "_give_back", away)
    monkeypatch.setattr(Workload, "ahead", three)
    async with db.transaction() as tx:
        first, *others = await send_many(tx, [Grind(i) for i in range(4)])
    async with working(db, on(Grind, grind), concurrency=1) as worker:
        await begun.wait()
        await until(lambda: ask(db, "SELECT FROM ticket HAVING count(worker) = 4"), "all are claimed")
        worker.stop()
        await until(lambda: ask(db, "SELECT 1 FROM worker WHERE state = 'stopping'"))
        go.set()
    ((state, name),) = await ask(db, "SELECT state, journal FROM worker")
    assert (state, journal.read_begun(name)) == ("stopping", frozenset())
    async with later(db, DEAD) as tx:
        (rescued,) = await rescue(tx)
        assert (rescued.back, rescued.suspects) == (tuple(others), ())
        assert await status(tx, first) == "completed"
        await audit(tx)
    journal.remove_journal(name)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "ready",
        "ready mill",
        "ready mill x y",
        "ready mill 1",
        "ready mill 1 2 3",
        "ready mill -1 2",
        "ready mill 1 1e9",
        f"ready mill 1 {10**30}",
        "ready nowhere 1 2",
        "cancel",
        "cancel x",
        "cancel -1",
        "cancel ²",
        "queue nowhere",
        "limiter x",
        "moo",
        "  ",
    ],
)
async def test_a_notification_of_nonsense_is_ignored(db: Database, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    heeded: list[str] = []
    heed = Shift._handle_notice  # pyright: ignore[reportPrivateUsage] nothing else tells that it was heard

    async def heeding(self: Shift, payload: str) -> None:
        await heed(self, payload)
        heeded.append(payload)

    async def heard() -> bool:
        return said in heeded

    monkeypatch.setattr(Shift, "_handle_notice", heeding)
    async with working(db, on(Grind, nothing)):
        await until_status(db, await sent(db, Grind(0)), "completed")
        await ask(db, "SELECT pg_notify('gristmill', %(said)s)", said=said)
        await until(heard, "it was heard")
        await until_status(db, await sent(db, Grind(1)), "completed")


# --- journals and lanes


@pytest.mark.parametrize("how", ["a link", "a link to nowhere", "open to others", "of somebody else", "a file"])
def test_a_folder_for_notes_that_is_not_ours_alone_is_refused(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(*_: Any) -> bool:
        return False

    me = os.geteuid()
    place = tmp_path / f"gristmill-{me}"
    monkeypatch.setattr(journal.os, "access", cannot)
    monkeypatch.setattr(journal.tempfile, "gettempdir", lambda: str(tmp_path))
    assert journal.journal_folder() == place
    place.rmdir()
    match how:
        case "a link":
            (tmp_path / "theirs").mkdir(mode=0o700)
            place.symlink_to(tmp_path / "theirs")
        case "a link to nowhere":
            place.symlink_to(tmp_path / "nowhere")
        case "a file":
            place.touch(mode=0o600)
        case "open to others":
            place.mkdir()
            place.chmod(0o755)
        case _:
            (tmp_path / f"gristmill-{me + 1}").mkdir(mode=0o700)
            monkeypatch.setattr(journal.os, "geteuid", lambda: me + 1)
    with pytest.raises(Refused, match="not a private folder of ours"):
        journal.journal_folder()
    assert journal.read_begun("any") is None


def test_a_drained_lane_is_forgotten_until_somebody_tells_of_it() -> None:
    marks = LaneMarks()
    marks.note_ready("mill", PEOPLE, 3)
    marks.note_ready("mill", NORMAL, 5)
    asked = [lane for lane, _ in marks.lanes(["mill"])]
    found = [Claim(TaskId(5), 5, NORMAL, "mill", 1, "mill.grind", "{}", None, True)]
    marks.advance(found)
    marks.forget_drained(asked, found)
    assert marks.foremost_lane(["mill"]) == NORMAL
    assert dict(marks.lanes(["mill"])) == {Lane("mill", NORMAL): 5}
    marks.forget_drained(asked, [])
    assert (marks.lanes(["mill"]), marks.foremost_lane(["mill"])) == ([], LAST)
    marks.note_ready("mill", PEOPLE, 9)
    assert (marks.foremost_lane(["mill"]), dict(marks.lanes(["mill"]))) == (PEOPLE, {Lane("mill", PEOPLE): 9})


def test_a_lane_told_of_while_a_claim_was_under_way_is_not_forgotten() -> None:
    marks = LaneMarks()
    marks.note_ready("mill", NORMAL, 5)
    asked = [lane for lane, _ in marks.lanes(["mill"])]
    marks.note_ready("mill", NORMAL, 6)
    marks.advance([])
    marks.forget_drained(asked, [])
    assert dict(marks.lanes(["mill"])) == {Lane("mill", NORMAL): 5}


async def test_a_worker_that_drained_its_lanes_finds_them_again_when_told(db: Database) -> None:
    async with working(db, on(Grind, nothing)):
        for grain in range(3):
            await until_status(db, await sent(db, Grind(grain), foreground=grain == 1), "completed")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), GeneratorExit(), BaseExceptionGroup("both", [SystemExit(1)]), Unprintable()]
)
async def test_whatever_an_async_handler_raises_is_a_failure_of_its_task_alone(
    db: Database, error: BaseException
) -> None:
    async def answer(letter: Grind) -> None:
        if letter.grain == 1:
            raise error

    async with db.transaction() as tx:
        ids = [await send(tx, Grind(grain), max_attempts=1) for grain in range(3)]
    await worked(db, on(Grind, answer))
    async with db.transaction() as tx:
        assert [await status(tx, one) for one in ids] == ["completed", "failed", "completed"]
        assert (await task(tx, ids[1])).error


async def test_a_result_too_large_to_keep_is_refused(db: Database) -> None:
    async def answer(letter: Grind) -> str:
        return "a" * 1_000_001

    async with db.transaction() as tx:
        id_ = await send(tx, Grind())
    await worked(db, on(Grind, answer))
    async with db.transaction() as tx:
        assert "too large" in (await task(tx, id_)).error


async def test_a_letter_cannot_be_replaced_into_another_group(db: Database) -> None:
    async with db.transaction() as tx:
        group = await open_group(tx)
        await send(tx, Grind(1), unique=Unique("mill", "replace"))
        with pytest.raises(Refused, match="another parent"):
            await send(tx, Grind(2), unique=Unique("mill", "replace"), parent=group)


@pytest.mark.parametrize("outside", [{"delay": timedelta(days=99_999_999)}, {"run_at": datetime(1, 1, 1, tzinfo=UTC)}])
def test_a_time_that_no_calendar_knows_is_refused(outside: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=r"too long|in the year"):
        Envelope(Grind(), **outside)
