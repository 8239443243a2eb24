"""A provider that fails on purpose: whatever it does costs a delay, and nothing else."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from farm import Farm, a_farm
from feed import FEED, PAGE, FeedServer, a_feed

from gristmill.db import Database
from gristmill.sources.kinds import KINDS
from gristmill.sources.listing import compare_ids
from gristmill.sources.model import Listed, Source
from gristmill.sources.status import SourceStanding, find_stopped_sources, load_standings
from gristmill.telemetry import Finding

MANY = [f"k{n:03}" for n in range(4 * PAGE)]


@pytest.fixture
async def feed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FeedServer]:
    monkeypatch.setenv("FEED_KEY", "good")
    monkeypatch.setitem(KINDS, "feed", FEED)  # pyright: ignore[reportArgumentType]
    async with a_feed() as opened:
        for key in MANY:
            opened.put(key)
        yield opened


@pytest.fixture
async def farm(db: Database, tmp_path: Path) -> AsyncIterator[Farm]:
    async with a_farm(db, tmp_path) as opened:
        yield opened


async def added(farm: Farm, feed: FeedServer) -> Source:
    source = await farm.add("feed", url=feed.url)
    await farm.work()
    return source


async def ids(farm: Farm, source: Source) -> list[str]:
    return [item.external for item in await farm.items(source) if item.state == "INDEXED"]


def failing(n: int, **how: Any) -> Any:
    """The nth call fails, once."""
    return lambda request, call: web.Response(**how) if call == n else None


async def test_an_error_on_the_third_page_costs_that_page_and_a_delay(farm: Farm, feed: FeedServer) -> None:
    feed.fault = failing(3, status=500)
    source = await added(farm, feed)
    assert await ids(farm, source) == MANY[: 2 * PAGE - 1]  # the second page begins with the last item of the first
    looked = await farm.look(source)
    assert looked.failures == 1
    assert "failed (500)" in str(looked.error)
    calls = feed.calls
    await farm.poll(source)
    assert await ids(farm, source) == MANY
    assert feed.calls - calls == 3  # it goes on where it was, and does not begin anew
    assert (await farm.look(source)).failures == 0


@pytest.mark.parametrize(
    ("headers", "wait"),
    [({"Retry-After": "600"}, 600), ({}, 60), ({"Retry-After": "Mon, 02 Mar 2026 10:05:00 GMT"}, 300)],
    ids=["seconds", "unsaid", "date"],
)
async def test_a_source_waits_for_as_long_as_it_is_told_and_is_not_called_broken(
    farm: Farm, feed: FeedServer, headers: dict[str, str], wait: int
) -> None:
    headers = headers | {"Date": "Mon, 02 Mar 2026 10:00:00 GMT"}
    feed.fault = failing(2, status=429, headers=headers)
    source = await added(farm, feed)
    looked = await farm.look(source)
    assert looked.failures == 0
    assert looked.waits_until is not None
    assert timedelta(seconds=wait - 30) < looked.waits_until - looked.now <= timedelta(seconds=wait)
    async with farm.db.transaction() as tx:
        assert (await load_standings(tx, [looked]))[source.id].status == "waiting"
        assert await find_stopped_sources(tx, farm.settings) == []


async def test_an_answer_that_is_cut_off_is_asked_for_again(farm: Farm, feed: FeedServer) -> None:
    feed.fault = failing(2, body=b'{"items": [{"id": "k0', content_type="application/json")
    source = await added(farm, feed)
    assert "was cut off" in str((await farm.look(source)).error)
    await farm.poll(source)
    assert await ids(farm, source) == MANY


async def test_a_token_that_expires_is_told_and_read_anew_with_the_next_poll(
    farm: Farm, feed: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.token = "newer"
    source = await added(farm, feed)
    error = str((await farm.look(source)).error)
    assert "refuses us (401)" in error
    assert "good" not in error
    monkeypatch.setenv("FEED_KEY", "newer")
    await farm.poll(source)
    assert await ids(farm, source) == MANY


async def test_pages_that_change_while_they_are_read_lose_nothing(farm: Farm, feed: FeedServer) -> None:
    def move(call: int) -> None:
        if call <= 4:
            feed.put(MANY[call - 1], "It moves to the end, and all behind it move up.")
            feed.put(f"new{call}")

    feed.moves = move
    source = await added(farm, feed)
    assert set(await ids(farm, source)) == {*MANY, *(f"new{n}" for n in range(1, 5))}


async def test_items_of_the_same_second_at_the_boundary_of_a_page_are_not_lost(farm: Farm, feed: FeedServer) -> None:
    for key in MANY:
        feed.put(key, at="same")
    source = await added(farm, feed)
    assert await ids(farm, source) == MANY
    feed.put("late", at="same")
    await farm.poll(source)
    assert await ids(farm, source) == [*MANY, "late"]


async def test_items_that_get_other_ids_stay_the_same_documents(farm: Farm, feed: FeedServer) -> None:
    source = await added(farm, feed)
    feed.renumber()
    await farm.compare(source)
    assert set(await farm.documents()) == {f"feed::{key}" for key in MANY}
    assert await ids(farm, source) == [f"new-{key}" for key in MANY]


async def test_a_listing_that_leaves_items_out_deletes_none_of_them(farm: Farm, feed: FeedServer) -> None:
    source = await added(farm, feed)
    kept = feed.posts.pop(MANY[5])
    feed.fault = lambda request, call: (
        web.json_response({"id": kept.id, "updated": kept.updated, "body": kept.body.decode()})
        if request.path.endswith(kept.id)
        else None
    )
    await farm.compare(source)
    assert await ids(farm, source) == MANY


async def test_a_source_that_stops_raises_an_alarm_when_two_intervals_have_passed(farm: Farm, feed: FeedServer) -> None:
    source = await added(farm, feed)
    feed.fault = lambda request, call: web.Response(status=500)
    await farm.poll(source)

    async def alarms(after: str) -> list[str]:
        async with farm.db.transaction() as tx:
            await tx.execute(f"SET LOCAL gristmill.clock_offset = '{after}'")  # pyright: ignore[reportArgumentType]
            return [one.sentence for one in await find_stopped_sources(tx, farm.settings)]

    assert await alarms("9 minutes") == []
    (sentence,) = await alarms("11 minutes")
    assert sentence.startswith("The source one has stopped. It has not succeeded for 11 min:")
    assert "failed (500)" in sentence
    assert source.every == timedelta(minutes=5)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_provider_that_puts_us_off_for_ever_is_told_though_it_is_no_failure(
    farm: Farm, feed: FeedServer, status: int
) -> None:
    source = await added(farm, feed)
    feed.fault = lambda request, call: web.Response(status=status)
    await farm.poll(source)
    looked = await farm.look(source)
    assert (looked.failures, (await standing(farm, looked)).status) == (0, "waiting")

    async def alarms(after: str) -> list[Finding]:
        async with farm.db.transaction() as tx:
            await tx.execute(f"SET LOCAL gristmill.clock_offset = '{after}'")  # pyright: ignore[reportArgumentType]
            await tx.execute("UPDATE source SET waits_until = clock() + interval '1 minute'")  # it is put off again
            return await find_stopped_sources(tx, farm.settings)

    assert await alarms("9 minutes") == []
    (found,) = await alarms("11 minutes")
    assert found.rule == "source-waiting"
    assert f"asks us to come again later ({status})" in found.sentence
    assert found.lasting == timedelta(hours=1)  # many providers count by the hour: that is no reason to wake anybody


async def standing(farm: Farm, source: Source) -> SourceStanding:
    async with farm.db.transaction() as tx:
        return (await load_standings(tx, [source]))[source.id]


async def test_a_hundred_thousand_unchanged_items_make_no_write_at_all(farm: Farm, feed: FeedServer) -> None:
    """Asked of the listing, which looks at all of them; the polls of a cursor do not even see them."""
    source = await added(farm, feed)
    await farm.rows(
        "INSERT INTO source_item (source, scope, external, mark, hash, state, urn) "
        "SELECT %(id)s, 1, 'x' || n, '000000', '', 'INDEXED', 'feed::x' || n FROM generate_series(1, 100000) n "
        "RETURNING 1",
        id=source.id,
    )

    class Lists:
        async def list_ids(self) -> AsyncIterator[list[Any]]:
            for start in range(1, 100_001, 1_000):
                yield [Listed(f"x{n}", "000000") for n in range(start, start + 1_000)]
            yield [Listed(item.external, item.mark) for item in rows]

    rows = await farm.rows("SELECT external, mark FROM source_item WHERE external LIKE 'k%%'")
    before = await read_versions(farm)
    found = await compare_ids(farm.db, await farm.look(source), Lists())  # pyright: ignore[reportArgumentType]
    assert found.agrees
    assert (found.there, found.here) == (100_040, 100_040)
    assert await read_versions(farm) == before


async def read_versions(farm: Farm) -> dict[str, list[Any]]:
    """How many rows each table of sources has, and the last transaction that wrote one."""
    tables = await farm.rows("SELECT relname AS name FROM pg_class WHERE relkind = 'r' AND relname LIKE 'source%%'")
    newest: Any = "SELECT count(*)::int AS n, max(xmin::text::bigint) AS last FROM {}"
    return {table.name: await farm.rows(newest.format(table.name)) for table in tables}
