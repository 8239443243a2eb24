"""The scheduler: items are dispatched ten minutes ahead, once or by cron, whatever the clocks of people do."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from workroom import Workroom

from gristmill.db import Tx
from gristmill.errors import Refused
from gristmill.qualifier.adding import ItemWish, add_item, cancel_item
from gristmill.qualifier.model import WorkItem
from gristmill.qualifier.scheduler import SQL as SCHEDULER
from gristmill.qualifier.scheduler import dispatch_item, plan_next
from gristmill.scopes import GLOBAL
from gristmill.settings import QualifierSettings

AHEAD = QualifierSettings().ahead


async def travel_to(tx: Tx, moment: datetime) -> None:
    """Let the clock of this transaction show another time."""
    offset = moment - datetime.now(UTC)
    await tx.one("SELECT set_config('gristmill.clock_offset', %(offset)s, true)", offset=f"{offset.total_seconds()} s")


async def dispatch_at(room: Workroom, moment: datetime) -> None:
    """What the scheduler does at another time."""
    async with room.db.transaction() as tx:
        await travel_to(tx, moment)
        now = await tx.value(SCHEDULER["read_clock"])
        for item in await tx.all(SCHEDULER["due_items"], WorkItem, ahead=AHEAD, limit=100):
            await dispatch_item(tx, item, now)


async def add_at(room: Workroom, moment: datetime, wish: ItemWish) -> WorkItem:
    async with room.db.transaction() as tx:
        await travel_to(tx, moment)
        return await add_item(tx, GLOBAL, wish, by="jana")


NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


async def test_an_item_is_dispatched_ten_minutes_before_its_time_and_not_earlier(room: Workroom) -> None:
    await room.do(add_item, GLOBAL, ItemWish("Call Ana.", scheduled_at=NOON), by="jana")
    await dispatch_at(room, NOON - 11 * MINUTE)
    assert await room.states() == ["scheduled"]
    await dispatch_at(room, NOON - 10 * MINUTE)
    item = await room.item()
    assert (item.state, item.scheduled_at) == ("ready_for_qualification", None)
    await room.work()
    assert await room.states() == ["completed"]


async def test_a_recurring_item_stays_and_a_copy_of_it_runs(room: Workroom) -> None:
    wish = ItemWish("Water the plants.", cron="0 8 * * *", zone="Europe/Prague")
    original = await add_at(room, datetime(2026, 12, 1, 12, tzinfo=UTC), wish)
    assert original.scheduled_at == datetime(2026, 12, 2, 7, tzinfo=UTC)
    await dispatch_at(room, datetime(2026, 12, 2, 6, 55, tzinfo=UTC))
    original, copy = await room.items()
    assert (original.state, original.scheduled_at) == ("scheduled", datetime(2026, 12, 3, 7, tzinfo=UTC))
    assert (copy.state, copy.origin, copy.text, copy.cron) == (
        "ready_for_qualification",
        original.id,
        "Water the plants.",
        None,
    )
    await room.work()
    assert await room.states() == ["scheduled", "completed"]


async def test_a_scheduler_that_was_away_runs_a_recurring_item_once(room: Workroom) -> None:
    await add_at(room, NOON, ItemWish("Tidy.", cron="@daily"))
    for _ in range(2):
        await dispatch_at(room, NOON + timedelta(days=7))
    original, _ = await room.items()
    assert original.scheduled_at == datetime(2026, 12, 9, tzinfo=UTC)


async def test_over_the_change_of_clocks_a_daily_item_keeps_its_hour(room: Workroom) -> None:
    zone = ZoneInfo("Europe/Prague")
    await add_at(room, datetime(2027, 3, 26, 12, tzinfo=UTC), ItemWish("Report.", cron="30 9 * * *", zone=str(zone)))
    for day in (27, 28, 29):
        await dispatch_at(room, datetime(2027, 3, day, 9, 25, tzinfo=zone))
    original, *copies = await room.items()
    assert [copy.written_at.astimezone(zone).strftime("%d %H:%M") for copy in copies] == [
        "27 09:30",
        "28 09:30",
        "29 09:30",
    ]
    assert original.scheduled_at == datetime(2027, 3, 30, 9, 30, tzinfo=zone)


@pytest.mark.parametrize("cron", ["every day", "61 * * * *", "0 0 31 2 *"])
async def test_an_expression_that_cannot_be_read_runs_once_with_a_warning(room: Workroom, cron: str) -> None:
    item = await room.do(add_item, GLOBAL, ItemWish("Call.", scheduled_at=NOON, cron=cron), by="jana")
    assert item.warning is not None
    assert item.warning.startswith(f"The cron expression “{cron}” cannot be read (")
    await dispatch_at(room, NOON)
    assert await room.states() == ["ready_for_qualification"]


async def test_an_expression_that_breaks_later_runs_once_with_a_warning(room: Workroom) -> None:
    await room.do(add_item, GLOBAL, ItemWish("Call.", scheduled_at=NOON, cron="@daily"), by="jana")
    async with room.db.transaction() as tx:
        await tx.execute("UPDATE item SET cron = 'nonsense'")
    await dispatch_at(room, NOON)
    item = await room.item()
    assert (item.state, item.cron, item.scheduled_at) == ("ready_for_qualification", None, None)
    assert item.warning is not None
    assert "runs once" in item.warning


async def test_an_item_without_any_time_is_refused(room: Workroom) -> None:
    with pytest.raises(Refused, match="This schedule cannot be read"):
        await room.do(add_item, GLOBAL, ItemWish("Call.", cron="nonsense"), by="jana")
    with pytest.raises(Refused, match="needs a time"):
        await room.do(add_item, GLOBAL, ItemWish("Call.", type="scheduled"), by="jana")
    with pytest.raises(Refused, match="no time zone"):
        await room.do(add_item, GLOBAL, ItemWish("Call.", cron="@daily", zone="Prague"), by="jana")


async def test_a_cancelled_item_is_never_dispatched(room: Workroom) -> None:
    item = await room.do(add_item, GLOBAL, ItemWish("Call.", scheduled_at=NOON, cron="@daily"), by="jana")
    await room.do(cancel_item, item.id, by="jana")
    await dispatch_at(room, NOON)
    assert await room.states() == ["done: cancelled"]


async def test_two_schedulers_dispatch_an_item_once(room: Workroom) -> None:
    await room.do(add_item, GLOBAL, ItemWish("Call.", scheduled_at=NOON), by="jana")
    async with room.db.transaction() as one:
        await travel_to(one, NOON)
        (item,) = await one.all(SCHEDULER["due_items"], WorkItem, ahead=AHEAD, limit=100)
        async with room.db.transaction() as two:
            await travel_to(two, NOON)
            assert await two.all(SCHEDULER["due_items"], WorkItem, ahead=AHEAD, limit=100) == []
        await dispatch_item(one, item, NOON)
    assert await room.states() == ["ready_for_qualification"]


async def test_the_letter_of_the_schedule_dispatches_what_is_due(room: Workroom) -> None:
    await room.do(add_item, GLOBAL, ItemWish("NOW", scheduled_at=datetime.now(UTC) + 5 * MINUTE), by="jana")
    await room.do(add_item, GLOBAL, ItemWish("NOW", scheduled_at=datetime.now(UTC) + 60 * MINUTE), by="jana")
    await room.dispatch()
    assert await room.states() == ["ready_for_execution", "scheduled"]


def test_the_next_run_is_later_than_the_last() -> None:
    assert plan_next("0 8 * * *", "UTC", NOON) == datetime(2026, 12, 2, 8, tzinfo=UTC)
