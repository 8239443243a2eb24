"""What every connector must do: each item once, nothing lost, nothing kept that is gone, whatever happens meanwhile."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from calendar_server import PASSWORD as CALENDAR_PASSWORD
from dovecot import PASSWORD
from farm import Farm, a_farm
from kills import Killed, KilledAt
from psycopg import sql
from worlds import SERVED, WORLDS, World, a_world

from gristmill.db import Database
from gristmill.queue import Done, Snooze
from gristmill.scopes import GLOBAL, Scope
from gristmill.sources.kinds import KINDS
from gristmill.sources.model import Source

KEYS = [f"k{n}" for n in range(5)]
MANY = 12  # items of a source, where five might pass by chance
KILLS = 8  # of a listing, spread over all that it awaits
FORGET = "DELETE FROM source_item WHERE source = %(id)s AND external = %(external)s RETURNING 1"


@pytest.fixture(params=sorted([*WORLDS, *SERVED]))
async def world(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[World]:
    monkeypatch.setenv("FEED_KEY", "good")
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    monkeypatch.setenv("CALENDAR_PASSWORD", CALENDAR_PASSWORD)
    monkeypatch.setenv("PROVIDER_TOKEN", "good")
    async with a_world(request.param, tmp_path, request) as opened:
        monkeypatch.setitem(KINDS, opened.kind.name, opened.kind)  # pyright: ignore[reportArgumentType]
        yield opened


@pytest.fixture
async def farm(db: Database, tmp_path: Path, world: World) -> AsyncIterator[Farm]:
    async with a_farm(db, tmp_path, keeps=True) as opened:
        yield opened


async def planted(farm: Farm, world: World, scope: Scope = GLOBAL, **how: str) -> Source:
    """A source with some items, polled once."""
    for key in KEYS:
        await world.put(key)
    source = await farm.add(world.kind.name, scope, **how, **world.options)
    await farm.work()
    return source


async def urns(farm: Farm, source: Source, state: str = "INDEXED") -> set[str]:
    return {item.urn for item in await farm.items(source) if item.state == state}


async def test_every_item_comes_once_and_a_second_poll_changes_nothing(farm: Farm, world: World) -> None:
    source = await planted(farm, world)
    assert await farm.documents() == {world.urn(key): 1 for key in KEYS}
    assert await urns(farm, source) == {world.urn(key) for key in KEYS}
    before = await farm.items(source)
    await farm.poll(source)
    assert await farm.items(source) == before
    assert await farm.documents() == {world.urn(key): 1 for key in KEYS}
    looked = await farm.look(source)
    assert (looked.error, looked.failures) == (None, 0)
    assert looked.succeeded_at is not None


async def test_unchanged_items_are_not_written_again(farm: Farm, world: World) -> None:
    """Neither by a poll nor by a listing: a row that is written has another place in its table."""
    source = await planted(farm, world)
    hands = farm.by_hand(KINDS)
    await hands.poll(source)  # what the last poll saw less than a minute after it was made is looked at once more
    rows = "SELECT id, xmin::text, ctid::text FROM source_item ORDER BY id"
    work = "SELECT count(*)::int AS n, max(id) AS last FROM task"
    before = await farm.rows(rows), await farm.rows(work), await farm.rows("SELECT sum(n) FROM source_tally")
    for ask in (hands.poll, hands.compare, hands.poll):
        answer = await ask(source)
        assert isinstance(answer, Done), answer
    after = await farm.rows(rows), await farm.rows(work), await farm.rows("SELECT sum(n) FROM source_tally")
    assert after == before


async def test_a_poll_and_a_listing_of_many_unchanged_items_write_nothing_but_the_row_of_their_source(
    farm: Farm, world: World
) -> None:
    """In no table of the house."""
    for n in range(MANY):
        await world.put(f"many{n}")
    source = await planted(farm, world)
    hands = farm.by_hand(KINDS)
    await hands.poll(source)  # what the last poll saw less than a minute after it was made is looked at once more
    before = await photograph(farm)
    for ask in (hands.poll, hands.compare, hands.poll):
        answer = await ask(source)
        assert isinstance(answer, Done), answer
    assert await photograph(farm) == before
    looked = await farm.look(source)
    assert looked.listing is not None
    assert (looked.listing["there"], looked.listing["here"]) == (MANY + len(KEYS), MANY + len(KEYS))


async def photograph(farm: Farm) -> dict[str, str]:
    """The place of every row of every table but that of sources: a row that is written has another one."""
    tables = await farm.rows(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace ORDER BY 1"
    )
    rows = {
        one.relname: await farm.rows(
            sql.SQL("SELECT count(*), max(xmin::text::bigint), sum(hashtext(ctid::text)) FROM {}").format(
                sql.Identifier(one.relname)
            )
        )
        for one in tables
        if one.relname != "source"
    }
    return {name: str(seen) for name, seen in rows.items()}


async def test_what_comes_later_comes_too(farm: Farm, world: World) -> None:
    source = await planted(farm, world)
    await world.put("late")
    await farm.poll(source)
    assert await urns(farm, source) == {world.urn(key) for key in [*KEYS, "late"]}


async def test_a_changed_item_is_a_new_version(farm: Farm, world: World) -> None:
    if not world.can_change:
        pytest.skip(f"an item of the kind {world.kind.name} never changes")
    source = await planted(farm, world)
    await world.put(KEYS[0], "Something else.")
    await farm.poll(source)
    assert sorted((await farm.documents()).values()) == [1, 1, 1, 1, 2]
    assert sorted(item.version for item in await farm.items(source)) == [1, 1, 1, 1, 2]


async def test_what_is_deleted_there_is_deleted_here_within_one_listing_and_told(farm: Farm, world: World) -> None:
    source = await planted(farm, world)
    await world.drop(KEYS[0])
    await farm.compare(source)
    assert await farm.documents() == {world.urn(key): 1 for key in KEYS[1:]}
    (gone,) = [item for item in await farm.items(source) if item.state == "DELETED"]
    assert gone.urn == world.urn(KEYS[0])
    assert gone.removed["documents"] == 1
    looked = await farm.look(source)
    assert looked.listing is not None
    assert (looked.listing["there"], looked.listing["surplus_count"]) == (4, 1)


async def test_an_item_that_comes_back_is_taken_in_again(farm: Farm, world: World) -> None:
    source = await planted(farm, world)
    await world.drop(KEYS[0])
    await farm.compare(source)
    await world.put(KEYS[0])
    await farm.compare(source)
    assert await urns(farm, source) == {world.urn(key) for key in KEYS}
    assert await farm.documents() == {world.urn(key): 1 for key in KEYS}


async def test_a_place_that_is_suddenly_empty_deletes_nothing_until_a_person_agrees(farm: Farm, world: World) -> None:
    for n in range(12):
        await world.put(f"more{n}")
    source = await planted(farm, world)
    await world.vanish()
    await farm.compare(source)
    assert len(await farm.documents()) == 17
    assert "17 of 17 items are gone" in str((await farm.look(source)).listing_error)
    await farm.compare(source, agreed=True)
    assert await farm.documents() == {}


async def test_an_item_that_cannot_be_read_is_set_aside_alone_with_its_bytes(farm: Farm, world: World) -> None:
    if not world.can_spoil:
        pytest.skip(f"every item of the kind {world.kind.name} can be read")
    bytes_ = await world.spoil("bad")
    source = await planted(farm, world)
    assert await urns(farm, source) == {world.urn(key) for key in KEYS}
    (bad,) = [item for item in await farm.items(source) if item.state == "SET_ASIDE"]
    assert bytes_ in bad.raw
    assert bad.error


async def test_what_the_cursor_missed_is_found_by_the_listing(farm: Farm, world: World) -> None:
    source = await planted(farm, world)
    await farm.rows("DELETE FROM source_item WHERE external = (SELECT max(external) FROM source_item) RETURNING 1")
    await farm.compare(source)
    assert await urns(farm, source) == {world.urn(key) for key in KEYS}


async def test_a_poll_that_is_killed_at_any_await_goes_on_as_if_it_had_not_been(farm: Farm, world: World) -> None:
    for key in KEYS[:2]:
        await world.put(key)
    hands = farm.by_hand(KINDS)
    for n in range(1, 1_000):
        source = await farm.add(world.kind.name, Scope(f"client{n}"), **world.options)
        await farm.rows("DELETE FROM ticket RETURNING 1")  # nobody else polls it
        killed = False
        try:
            await KilledAt(n, hands.poll(source))
        except Killed:
            killed = True
        answer = await hands.poll(source)
        if isinstance(answer, Snooze):  # the server was just committing for the one that we killed
            answer = await hands.poll(source)
        assert isinstance(answer, Done), answer
        rows = await farm.rows("SELECT external, version FROM source_item WHERE source = %(id)s", id=source.id)
        assert sorted(row.version for row in rows) == [1, 1], n
        (letters,) = await farm.rows(
            "SELECT count(*)::int AS n FROM task WHERE kind = 'index.item' AND scope = %(scope)s", scope=source.scope
        )
        assert letters.n == 2, n
        if not killed:
            assert n > 5
            return
    raise AssertionError("it never came to its end")


async def test_a_listing_that_is_killed_on_its_way_ends_as_if_it_had_not_been(farm: Farm, world: World) -> None:
    for key in KEYS[:3]:
        await world.put(key)
    hands = farm.by_hand(KINDS)
    sources = [await farm.add(world.kind.name, Scope(f"client{n}"), **world.options) for n in range(KILLS + 1)]
    await farm.rows("DELETE FROM ticket RETURNING 1")  # nobody else polls them
    for source in sources:
        answer = await hands.poll(source)
        assert isinstance(answer, Done), answer
    gone, forgotten = await find_dropped(farm, world, sources[0])
    awaits = 1_000_000  # it comes to its end: how often it awaits is known then
    for n, source in enumerate(sources):
        await farm.rows(FORGET, id=source.id, external=forgotten)
        listing = KilledAt(awaits * n // (KILLS + 1) if n else awaits, hands.compare(source))
        try:
            await listing
        except Killed:
            assert n
        awaits = awaits if n else awaits - listing.left
        answer = await hands.compare(source)
        assert isinstance(answer, Done), answer
        rows = await farm.rows("SELECT external, leaving FROM source_item WHERE source = %(id)s", id=source.id)
        assert len(rows) == 3, n
        assert [row.external for row in rows if row.leaving] == [gone], n
    assert awaits > KILLS


async def find_dropped(farm: Farm, world: World, source: Source) -> tuple[str, str]:
    """Drop an item there; its id, and that of another one."""
    before = [item.external for item in await farm.items(source)]
    hands = farm.by_hand(KINDS)
    await world.drop(KEYS[0])
    async with hands.opener.open(source) as connector:
        there = [one.external async for listed in connector.list_ids() for one in listed]
    (gone,) = set(before) - set(there)
    return gone, there[0]


async def test_the_states_are_counted_as_they_are(farm: Farm, world: World) -> None:
    source = await planted(farm, world)
    await world.drop(KEYS[0])
    await farm.compare(source)
    counted = await farm.rows(
        "SELECT state, sum(n)::int AS n FROM source_tally WHERE source = %(id)s GROUP BY state HAVING sum(n) <> 0",
        id=source.id,
    )
    assert {row.state: row.n for row in counted} == {"INDEXED": 4, "DELETED": 1}


async def test_an_item_that_comes_back_while_its_removal_waits_stays(farm: Farm, world: World) -> None:
    source = await planted(farm, world)
    hands = farm.by_hand(KINDS)
    await world.drop("k1")
    answer = await hands.compare(source)  # which sends the removal; nobody answers it yet
    assert isinstance(answer, Done)
    await world.put("k1")
    poll = await hands.poll(source)
    assert isinstance(poll, Done)
    await farm.work()
    assert world.urn("k1") in await urns(farm, source)
    assert await farm.documents() == {world.urn(key): 1 for key in KEYS}
    await farm.compare(source)
    assert await farm.documents() == {world.urn(key): 1 for key in KEYS}
