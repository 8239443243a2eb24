"""Throughput, failures and depth over time."""

from datetime import UTC, datetime, timedelta

import pytest
from engine import DAY, MINUTE, Bake, Grind, audit, buried, ground, later

from gristmill.db import Database, Tx
from gristmill.errors import Refused
from gristmill.queue.letters import Envelope
from gristmill.queue.operate import dead
from gristmill.queue.operate.trends import ORIGIN, TrendPoint, read_sparks, read_trend
from gristmill.queue.send import send_many
from gristmill.queue.upkeep.sampler import BACK, sample
from gristmill.scopes import Scope, scope_id
from gristmill.settings import QueueSettings

HOUR = timedelta(hours=1)
SETTINGS = QueueSettings()


async def to_boundary(tx: Tx, step: timedelta) -> timedelta:
    """How far the clock must be moved to the beginning of the next step."""
    now = await tx.value("SELECT now()")
    return step - (now - ORIGIN) % step


async def test_a_chart_shows_what_happened_when_and_how_many_were_open(db: Database) -> None:
    async with db.transaction() as tx:
        start = await to_boundary(tx, HOUR)
    async with later(db, start) as tx:
        await send_many(tx, [Grind(i) for i in range(10)])
        await ground(tx, 3)
    async with later(db, start + MINUTE) as tx:
        assert await sample(tx, SETTINGS)
        await buried(tx, 2)
        await send_many(tx, [Bake(1)])
    async with later(db, start + 2 * MINUTE) as tx:
        await sample(tx, SETTINGS)
    async with later(db, start + 3 * MINUTE) as tx:
        await ground(tx, 4)  # in no sample yet
        points = await read_trend(tx, "mill", span=4 * MINUTE)
        assert [(p.opened, p.completed, p.failed, p.open, p.dead) for p in points] == [
            (10, 3, 0, 7, 0),
            (0, 0, 2, 5, 2),
            (0, 0, 0, 5, 2),
            (0, 4, 0, 1, 2),
        ]
        assert [p.open for p in await read_trend(tx, span=4 * MINUTE)] == [7, 6, 6, 2]
        assert points[1].at - points[0].at == MINUTE
        sparks = await read_sparks(tx, span=4 * MINUTE, step=MINUTE)
        assert (sparks["mill"].ended, sparks["mill"].failed) == ((3, 2, 0, 0), (0, 2, 0, 0))
        await dead.replay(tx, queue="mill")
        assert [(p.open, p.dead) for p in await read_trend(tx, "mill", span=2 * MINUTE)] == [(5, 2), (3, 0)]
        await audit(tx)


async def test_sampling_twice_counts_nothing_twice(db: Database) -> None:
    async with later(db, MINUTE) as tx:
        await send_many(tx, [Grind(1)])
        await sample(tx, SETTINGS)
        await sample(tx, SETTINGS)
        await send_many(tx, [Grind(1)])
        await sample(tx, SETTINGS)
        assert await tx.value("SELECT sum(opened) FROM queue_sample") == 2
        assert await tx.value("SELECT max(opened) FROM queue_sampled") == 2


async def test_old_minutes_become_hours_and_old_hours_go(db: Database) -> None:
    async with db.transaction() as tx:
        start = await to_boundary(tx, HOUR) + BACK
    for minute in range(3):
        async with later(db, start + minute * MINUTE) as tx:
            await send_many(tx, [Grind(1)])
            await sample(tx, SETTINGS)
    async with later(db, start + 3 * DAY) as tx:
        await sample(tx, SETTINGS)
        rows = await tx.all("SELECT hourly, opened FROM queue_sample")
        assert [(row.hourly, row.opened) for row in rows] == [(True, 3)]
        points = await read_trend(tx, "mill", span=4 * DAY, step=HOUR)
        assert (sum(p.opened for p in points), points[-1].open) == (3, 3)
    async with later(db, start + 91 * DAY) as tx:
        await sample(tx, SETTINGS)
        assert await tx.value("SELECT count(*) FROM queue_sample") == 0
        assert await tx.value("SELECT opened FROM queue_sampled") == 3  # or all would be counted again


async def test_a_client_sees_its_own_history(db: Database) -> None:
    async with db.transaction() as tx:
        own = await scope_id(tx, Scope("acme"))
        await send_many(tx, [Envelope(Grind(1), scope=own), Grind(2), Grind(3)])
        await sample(tx, SETTINGS)
    async with db.reading(seen_from=Scope("acme")) as tx:
        points = await read_trend(tx, span=5 * MINUTE)
        assert (points[-1].open, sum(p.opened for p in points)) == (1, 1)


@pytest.mark.parametrize(
    ("span", "step", "sentence"),
    [(HOUR, timedelta(seconds=90), "whole number"), (MINUTE, HOUR, "shorter"), (30 * DAY, MINUTE, "longer step")],
)
async def test_steps_that_no_chart_can_show_are_refused(
    db: Database, span: timedelta, step: timedelta, sentence: str
) -> None:
    async with db.transaction() as tx:
        with pytest.raises(Refused, match=sentence):
            await read_trend(tx, span=span, step=step)


def test_what_ended_is_the_sum_of_all_outcomes() -> None:
    assert TrendPoint(datetime(2026, 1, 1, tzinfo=UTC), completed=1, failed=2, skipped=3, cancelled=4).ended == 10
