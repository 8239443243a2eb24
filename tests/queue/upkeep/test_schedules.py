"""Schedules fire each run exactly once, whoever asks and however often."""

import asyncio
import itertools
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest

from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.queue.upkeep.runs import list_runs
from gristmill.queue.upkeep.schedules import (
    add_schedule,
    enable_schedule,
    fire,
    list_schedules,
    next_fire,
    remove_schedule,
    run_schedule,
)
from gristmill.scopes import GLOBAL_ID

ZAGREB = "Europe/Zagreb"
MINUTE = timedelta(seconds=60)


@dataclass(frozen=True)
class Scan:
    kind: ClassVar[str] = "sentinel.scan"
    level: str = "critical"


@asynccontextmanager
async def at(db: Database, when: str):
    """A transaction at that moment (UTC)."""
    async with db.transaction() as tx:
        await tx.one(
            "SELECT set_config('gristmill.clock_offset', (%(when)s - clock_timestamp())::text, true)",
            when=utc(when),
        )
        yield tx


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


async def fired(db: Database, when: str, **options) -> list[str]:
    async with at(db, when) as tx:
        return [run.name for run in await fire(tx, **options)]


async def letters(db: Database) -> list[tuple[str, str, dict]]:
    async with db.transaction() as tx:
        rows = await tx.all("SELECT t.queue, t.kind, t.payload FROM task t JOIN ticket USING (id) ORDER BY t.id")
        return [tuple(row) for row in rows]


async def the(db: Database, name: str):
    async with db.transaction() as tx:
        return next(one for one in await list_schedules(tx) if one.name == name)


@pytest.fixture
async def daily(db: Database) -> Database:
    """At six in Zagreb, which in January is five in UTC."""
    async with at(db, "2026-01-07 04:00") as tx:
        await add_schedule(tx, "sentinel-critical", Scan(), cron="06:00", zone=ZAGREB)
    return db


async def test_a_schedule_sends_its_letter_when_it_is_due(daily):
    assert await fired(daily, "2026-01-07 04:59:50") == []
    assert await letters(daily) == []
    assert await fired(daily, "2026-01-07 05:00") == ["sentinel-critical"]
    assert await letters(daily) == [("sentinel", "sentinel.scan", {"level": "critical"})]
    assert await fired(daily, "2026-01-07 05:00:05") == []


async def test_what_was_fired_is_written_down(daily):
    async with at(daily, "2026-01-07 05:00:03") as tx:
        (run,) = await fire(tx)
    assert (run.due, run.next_at, run.problem) == (
        utc("2026-01-07 05:00"),
        utc("2026-01-08 05:00"),
        None,
    )
    now = await the(daily, "sentinel-critical")
    assert (now.next_at, now.last_at, now.last_task) == (run.next_at, run.at, run.task)


async def test_missed_runs_fire_once_and_go_on_from_now(daily):
    assert await fired(daily, "2026-01-12 13:00") == ["sentinel-critical"]
    assert await fired(daily, "2026-01-12 13:00:05") == []
    assert (await the(daily, "sentinel-critical")).next_at == utc("2026-01-13 05:00")


async def test_the_wall_clock_counts_when_summer_comes(daily):
    await fired(daily, "2026-03-28 05:00")
    assert (await the(daily, "sentinel-critical")).next_at == utc("2026-03-29 04:00")


async def test_a_scheduler_that_fails_leaves_the_run_to_the_next(daily):
    with suppress(RuntimeError):
        async with at(daily, "2026-01-07 05:00") as tx:
            assert await fire(tx)
            raise RuntimeError
    assert await letters(daily) == []
    assert await fired(daily, "2026-01-07 05:00") == ["sentinel-critical"]


async def test_any_number_of_schedulers_fire_each_run_once(url):
    async with Database(url, size=6) as db:
        async with at(db, "2026-01-07 04:00") as tx:
            for i in range(30):
                await add_schedule(tx, f"job-{i:02}", Scan(str(i)), cron="06:00", zone=ZAGREB)
        for day in ("2026-01-07", "2026-01-08"):
            everybody = [drain(db, f"{day} 05:00:01") for _ in range(6)]
            names = list(itertools.chain.from_iterable(await asyncio.gather(*everybody)))
            assert sorted(names) == [f"job-{i:02}" for i in range(30)]
        assert len(await letters(db)) == 60


async def drain(db: Database, when: str) -> list[str]:
    names: list[str] = []
    while some := await fired(db, when, limit=4):
        names += some
    return names


async def test_schedulers_whose_batches_follow_each_other_do_not_lock_each_other_out(url):
    async with Database(url, size=6) as db:
        async with at(db, "2026-01-07 04:00") as tx:
            for i in range(10):
                await add_schedule(tx, f"leader-{i}", Scan(), cron="* * * * *")
            for i in range(10):
                await add_schedule(tx, f"follower-{i}", Scan(), follows=f"leader-{9 - i}")
        for minute in range(1, 6):
            await asyncio.gather(*[fired(db, f"2026-01-07 04:0{minute}:01", limit=3) for _ in range(6)])
        while await fired(db, "2026-01-07 04:05:20"):
            pass
        async with db.transaction() as tx:
            assert all(one.last_at > utc("2026-01-07 04:05") for one in await list_schedules(tx))


async def test_a_one_shot_fires_once_and_rests(db):
    async with at(db, "2026-01-07 04:00") as tx:
        await add_schedule(tx, "once", Scan(), once_at=utc("2026-01-07 10:00"))
    assert await fired(db, "2026-01-07 09:59") == []
    assert await fired(db, "2026-01-07 10:00:01") == ["once"]
    assert await fired(db, "2026-01-08 10:00") == []
    once = await the(db, "once")
    assert (once.enabled, once.next_at) == (False, None)
    assert once.last_at >= utc("2026-01-07 10:00")


async def test_a_one_shot_whose_time_has_passed_fires_now(db):
    async with at(db, "2026-01-07 04:00") as tx:
        await add_schedule(tx, "once", Scan(), once_at=utc("2026-01-06 10:00"))
    assert await fired(db, "2026-01-07 04:00:01") == ["once"]


async def test_a_one_shot_that_has_fired_is_enabled_by_a_new_time_only(db):
    async with at(db, "2026-01-07 10:00") as tx:
        await add_schedule(tx, "once", Scan(), once_at=utc("2026-01-07 10:00"))
        await fire(tx)
        with pytest.raises(Refused, match="The time of “once” has passed"):
            await enable_schedule(tx, "once", True)
        await add_schedule(tx, "once", Scan(), once_at=utc("2026-01-07 10:00"), replace=True)
        assert await next_fire(tx) is None
        await add_schedule(tx, "once", Scan(), once_at=utc("2026-01-07 12:00"), replace=True)
    assert await fired(db, "2026-01-07 12:00") == ["once"]


@pytest.fixture
async def chain(daily: Database) -> Database:
    async with at(daily, "2026-01-07 04:00") as tx:
        await add_schedule(tx, "high", Scan("high"), follows="sentinel-critical", delay=MINUTE)
        await add_schedule(tx, "normal", Scan("normal"), follows="sentinel-critical", delay=2 * MINUTE)
        await add_schedule(tx, "low", Scan("low"), follows="normal", delay=MINUTE)
    return daily


async def test_followers_fire_after_their_leader_each_with_its_delay(chain):
    assert await fired(chain, "2026-01-07 04:59") == []
    assert await fired(chain, "2026-01-07 05:00") == ["sentinel-critical"]
    assert await fired(chain, "2026-01-07 05:00:55") == []
    assert await fired(chain, "2026-01-07 05:01:10") == ["high"]
    assert await fired(chain, "2026-01-07 05:02:20") == ["normal"]
    assert await fired(chain, "2026-01-07 05:03:10") == []
    assert await fired(chain, "2026-01-07 05:03:30") == ["low"]
    assert await fired(chain, "2026-01-07 23:00") == []
    assert await fired(chain, "2026-01-08 05:00") == ["sentinel-critical"]


async def test_a_missed_leader_keeps_its_followers_at_their_distance(chain):
    assert await fired(chain, "2026-01-09 13:00") == ["sentinel-critical"]
    assert await fired(chain, "2026-01-09 13:00:50") == []
    assert await fired(chain, "2026-01-09 13:01:10") == ["high"]


async def test_a_leader_faster_than_the_delay_does_not_push_its_follower_away(db):
    async with at(db, "2026-01-07 04:00") as tx:
        await add_schedule(tx, "fast", Scan(), cron="* * * * *")
        await add_schedule(tx, "slow", Scan(), follows="fast", delay=5 * MINUTE)
    names = [name for m in range(1, 14) for name in await fired(db, f"2026-01-07 04:{m:02}:01")]
    assert names.count("fast") == 13
    assert names.count("slow") == 2


@pytest.mark.parametrize("resting", ["sentinel-critical", "high"])
async def test_a_disabled_schedule_never_fires(chain, resting):
    async with at(chain, "2026-01-07 04:00") as tx:
        await enable_schedule(tx, resting, False)
    for minute in range(10):
        assert resting not in await fired(chain, f"2026-01-07 05:0{minute}:30")
    assert (await the(chain, resting)).next_at is None


async def test_enabling_computes_the_next_run_from_now(daily):
    async with at(daily, "2026-01-07 04:00") as tx:
        await enable_schedule(tx, "sentinel-critical", False)
    async with at(daily, "2026-01-10 13:00") as tx:
        await enable_schedule(tx, "sentinel-critical", True)
    assert await fired(daily, "2026-01-10 13:00:05") == []
    assert (await the(daily, "sentinel-critical")).next_at == utc("2026-01-11 05:00")


async def test_enabling_what_is_enabled_does_not_lose_a_missed_run(daily):
    async with at(daily, "2026-01-10 13:00") as tx:
        await enable_schedule(tx, "sentinel-critical", True)
        assert len(await fire(tx)) == 1


async def test_running_now_moves_nothing(chain):
    async with at(chain, "2026-01-07 04:30") as tx:
        task = await run_schedule(tx, "sentinel-critical")
    assert await letters(chain) == [("sentinel", "sentinel.scan", {"level": "critical"})]
    critical = await the(chain, "sentinel-critical")
    assert (critical.next_at, critical.last_task) == (utc("2026-01-07 05:00"), task)
    assert (await the(chain, "high")).next_at is None


async def test_the_loop_learns_how_long_it_may_sleep(daily):
    async with at(daily, "2026-01-07 04:59") as tx:
        wait = await next_fire(tx)
        assert timedelta(seconds=50) < wait <= timedelta(seconds=60)
    async with at(daily, "2026-01-07 05:01") as tx:
        assert await next_fire(tx) == timedelta(0)
        await enable_schedule(tx, "sentinel-critical", False)
        assert await next_fire(tx) is None


async def test_a_raw_letter_needs_no_class(db):
    async with at(db, "2026-01-07 04:00") as tx:
        await add_schedule(tx, "raw", ("mail.poll", "mail", {"box": "ž"}), cron="@hourly")
    await fired(db, "2026-01-07 05:00")
    assert await letters(db) == [("mail", "mail.poll", {"box": "ž"})]


async def test_a_name_is_taken_until_it_is_replaced(daily):
    async with at(daily, "2026-01-07 04:00") as tx:
        with pytest.raises(Refused, match="already a schedule “sentinel-critical”"):
            await add_schedule(tx, "sentinel-critical", Scan(), cron="07:00")
        await add_schedule(tx, "sentinel-critical", Scan("all"), cron="07:00", replace=True)
    assert (await the(daily, "sentinel-critical")).next_at == utc("2026-01-07 07:00")
    await fired(daily, "2026-01-07 07:00")
    assert await letters(daily) == [("sentinel", "sentinel.scan", {"level": "all"})]


async def test_a_program_that_states_its_schedules_at_every_start_loses_no_missed_run(daily):
    async with at(daily, "2026-01-07 13:00") as tx:
        await add_schedule(tx, "sentinel-critical", Scan(), cron="06:00", zone=ZAGREB, replace=True)
        assert len(await fire(tx)) == 1
        await enable_schedule(tx, "sentinel-critical", False)
        await add_schedule(tx, "sentinel-critical", Scan(), cron="06:00", zone=ZAGREB, replace=True)
        assert await next_fire(tx) is None  # what a person disabled stays disabled


async def test_a_followed_schedule_is_removed_with_its_followers_or_not_at_all(chain):
    async with at(chain, "2026-01-07 04:00") as tx:
        with pytest.raises(Refused, match="“sentinel-critical” is followed by high, normal, low"):
            await remove_schedule(tx, "sentinel-critical")
        assert await remove_schedule(tx, "low") == ["low"]
        assert await remove_schedule(tx, "sentinel-critical", cascade=True) == [
            "sentinel-critical",
            "high",
            "normal",
        ]
        assert await list_schedules(tx) == []


async def test_a_circle_is_refused_and_shown(chain):
    async with at(chain, "2026-01-07 04:00") as tx:
        with pytest.raises(Refused, match="sentinel-critical → low → normal → sentinel-critical"):
            await add_schedule(tx, "sentinel-critical", Scan(), follows="low", delay=MINUTE, replace=True)
        with pytest.raises(Refused, match="“high” cannot follow itself"):
            await add_schedule(tx, "high", Scan(), follows="high", delay=MINUTE, replace=True)


async def test_two_who_close_a_circle_together_are_not_both_heard(url):
    async with Database(url) as db:
        async with at(db, "2026-01-07 04:00") as tx:
            await add_schedule(tx, "a", Scan(), cron="@daily")
            await add_schedule(tx, "b", Scan(), cron="@daily")

        async def follow(name: str, leader: str) -> None:
            async with db.transaction() as tx:
                await add_schedule(tx, name, Scan(), follows=leader, delay=MINUTE, replace=True)

        results = await asyncio.gather(follow("a", "b"), follow("b", "a"), return_exceptions=True)
        assert sorted(type(one).__name__ for one in results) == ["NoneType", "Refused"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cron": "75 6 * * *"}, "minute goes from 0 to 59"),
        ({"cron": "06:00", "zone": "Europe/Zagrb"}, "Did you mean Europe/Zagreb"),
        ({}, "needs one of cron, once_at and follows, not 0"),
        ({"cron": "06:00", "follows": "other"}, "needs one of cron, once_at and follows, not 2"),
        ({"cron": "06:00", "delay": MINUTE}, "has a delay but follows nothing"),
        ({"follows": "sentinel-kritical", "delay": MINUTE}, "Did you mean sentinel-critical"),
        ({"follows": "sentinel-critical", "delay": -MINUTE}, "A delay cannot be negative"),
        ({"once_at": datetime(2026, 1, 7)}, "once_at needs a time zone"),  # noqa: DTZ001 - that is the point
    ],
)
async def test_what_makes_no_sense_is_refused(daily, options, sentence):
    async with daily.transaction() as tx:
        with pytest.raises(Refused, match=sentence):
            await add_schedule(tx, "new", Scan(), **options)
        assert [one.name for one in await list_schedules(tx)] == ["sentinel-critical"]


@pytest.mark.parametrize(
    ("name", "letter", "sentence"),
    [
        ("No Spaces", Scan(), "cannot be the name of a schedule"),
        ("new", ("mail.poll", "Mail Box", {}), "cannot be the name of a queue"),
        ("new", ("group", "mail", {}), "A group cannot be scheduled"),
        ("new", ("mail.poll", "mail", {"x": "x" * 1_000_000}), "too large"),
        ("new", Scan("x" * 1_000_000), "too large"),
    ],
)
async def test_what_could_not_be_sent_is_refused(db, name, letter, sentence):
    async with db.transaction() as tx:
        with pytest.raises(Refused, match=sentence):
            await add_schedule(tx, name, letter, cron="06:00")


async def test_an_unknown_schedule_is_refused_with_what_was_meant(daily):
    async with daily.transaction() as tx:
        for ask in (run_schedule, remove_schedule):
            with pytest.raises(Refused, match=r"no schedule “sentinel”. Did you mean sentinel-critical\?"):
                await ask(tx, "sentinel")
        with pytest.raises(Refused, match="no schedule “x”"):
            await enable_schedule(tx, "x", True)


async def test_a_plan_that_cannot_be_read_any_more_does_not_stop_the_others(chain):
    async with at(chain, "2026-01-07 05:00") as tx:
        await add_schedule(tx, "other", Scan(), cron="05:00")
        await tx.execute("UPDATE schedule SET zone = 'Atlantis', next_at = clock() WHERE name = 'other'")
        runs = {run.name: run.problem for run in await fire(tx)}
    assert runs["sentinel-critical"] is None
    assert "There is no time zone “Atlantis”" in runs["other"]
    assert not (await the(chain, "other")).enabled


async def test_every_run_by_time_or_by_hand_is_in_the_history(daily):
    await fired(daily, "2026-01-07 05:00:03")
    async with at(daily, "2026-01-07 09:00") as tx:
        task = await run_schedule(tx, "sentinel-critical")
        by_hand, by_time = await list_runs(tx, [(GLOBAL_ID, "sentinel-critical"), (GLOBAL_ID, "none")])
        assert (by_hand.due, by_hand.task, by_hand.status) == (None, task, "pending")
        assert by_time.due == utc("2026-01-07 05:00")
        assert utc("2026-01-07 05:00:03") <= by_time.at < utc("2026-01-07 05:01")
        assert await list_runs(tx, [(GLOBAL_ID, "sentinel-critical")], limit=1, before=by_hand.id) == [by_time]
        await remove_schedule(tx, "sentinel-critical")
        assert await list_runs(tx, [(GLOBAL_ID, "sentinel-critical")]) == []


async def test_a_patient_schedule_sends_nothing_while_its_last_task_waits(db):
    async with at(db, "2026-01-07 04:00") as tx:
        await add_schedule(tx, "minutely", Scan(), cron="* * * * *", patient=True)
    assert await fired(db, "2026-01-07 04:01") == ["minutely"]
    assert await fired(db, "2026-01-07 04:02") == []
    assert (await the(db, "minutely")).next_at == utc("2026-01-07 04:03"), "it looks again at its next run"
    assert len(await letters(db)) == 1
    async with db.transaction() as tx:
        await tx.execute("DELETE FROM ticket")
        await tx.execute("UPDATE task SET outcome = 'completed', finished_at = clock()")
    assert await fired(db, "2026-01-07 04:03") == ["minutely"]
