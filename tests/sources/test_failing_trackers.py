"""Trackers and wikis that fail on purpose: whatever they do costs a delay, and nothing else."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from fake_server import START
from farm import Farm, Hands, a_farm
from worlds import PROVIDERS, WORLDS, ProviderWorld

from gristmill.db import Database
from gristmill.queue import Done, Snooze
from gristmill.sources.http import read_wait
from gristmill.sources.model import Source
from gristmill.sources.tracker import github, gitlab, jira
from gristmill.sources.wiki import cloud, server
from gristmill.telemetry import WorkerMetrics

PAGE = 5
MANY = [f"k{n:03}" for n in range(4 * PAGE)]
LISTINGS = ("/search/jql", "/api/2/search", "/mill/issues", "mill/merge_requests", "/v2/pages", "/content/search")


@pytest.fixture(params=PROVIDERS)
async def world(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ProviderWorld]:
    monkeypatch.setenv("PROVIDER_TOKEN", "good")
    for module in (jira, github, gitlab, cloud, server):
        monkeypatch.setattr(module, "LISTED", PAGE)
    async with WORLDS[request.param](tmp_path) as opened:
        assert isinstance(opened, ProviderWorld)
        yield opened


@pytest.fixture
async def farm(db: Database, tmp_path: Path) -> AsyncIterator[Farm]:
    async with a_farm(db, tmp_path) as opened:
        yield opened


@dataclass
class Reader:
    """A source that is polled by hand: what it brings is kept, and nobody looks into it."""

    farm: Farm
    world: ProviderWorld
    source: Source
    hands: Hands

    async def poll(self) -> Any:
        return await self._settle(await self.hands.poll(self.source))

    async def compare(self) -> Any:
        return await self._settle(await self.hands.compare(self.source))

    async def _settle(self, answer: Any) -> Any:
        if isinstance(answer, Done) and answer.write is not None:
            async with self.farm.db.transaction() as tx:
                await answer.write(tx)
        return answer

    async def look(self) -> Source:
        return await self.farm.look(self.source)

    async def versions(self, state: str = "NEW") -> dict[str, int]:
        """The items that are here, by the names that they have in the world."""
        names = {self.world.external(name): name for name in self.world.things}
        items = [item for item in await self.farm.items(self.source) if item.state == state]
        return {names[item.external]: item.version for item in items}

    async def names(self) -> list[str]:
        return sorted(await self.versions())


@pytest.fixture
async def reader(farm: Farm, world: ProviderWorld) -> Reader:
    source = await farm.add(world.kind.name, **world.options)
    return Reader(farm, world, source, farm.by_hand({world.kind.name: world.kind}))


def plant(world: ProviderWorld, names: list[str] = MANY) -> None:
    for name in names:
        world.server.put(name)


def is_listing(request: web.Request) -> bool:
    return request.method == "GET" and request.path.endswith(LISTINGS)


def fail_listing(n: int, **how: Any) -> Any:
    """The nth page of a listing is answered otherwise, once."""
    seen: list[str] = []

    def fault(request: web.Request, call: int) -> web.StreamResponse | None:
        if not is_listing(request):
            return None
        seen.append(request.path)
        return web.Response(**how) if len(seen) == n else None

    return fault


async def test_an_error_on_the_third_page_costs_a_delay_and_nothing_is_fetched_again(
    reader: Reader, world: ProviderWorld
) -> None:
    plant(world)
    world.server.fault = fail_listing(3, status=500)
    await reader.poll()
    kept = await reader.versions()
    assert PAGE < len(kept) < len(MANY)
    looked = await reader.look()
    assert looked.failures == 1
    assert "failed (500)" in str(looked.error)
    await reader.poll()
    assert await reader.versions() == dict.fromkeys(MANY, 1)
    assert (await reader.look()).failures == 0


@pytest.mark.parametrize(
    ("headers", "wait"),
    [({"Retry-After": "600"}, 600), ({}, 60), ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772446200"}, 600)],
    ids=["seconds", "unsaid", "reset"],
)
async def test_a_limit_puts_the_source_off_and_is_not_called_broken(
    reader: Reader, world: ProviderWorld, headers: dict[str, str], wait: int
) -> None:
    plant(world)
    headers = headers | {"Date": "Mon, 02 Mar 2026 10:00:00 GMT"}
    world.server.fault = fail_listing(2, status=429, headers=headers)
    counted = WorkerMetrics("1")
    reader.hands.metrics = counted
    answer = await reader.poll()
    assert isinstance(answer, Snooze)
    assert answer.wait == timedelta(seconds=wait)
    assert b'worker_rate_limit_hits_total{domain="127.0.0.1",worker="1"} 1.0' in counted.render()
    looked = await reader.look()
    assert (looked.failures, looked.waits_until is not None) == (0, True)
    await reader.poll()
    assert await reader.names() == MANY


async def test_an_answer_that_is_cut_off_is_asked_for_again(reader: Reader, world: ProviderWorld) -> None:
    plant(world)
    world.server.fault = fail_listing(2, body=b'{"issues": [{"id": "1', content_type="application/json")
    await reader.poll()
    assert "was cut off" in str((await reader.look()).error)
    await reader.poll()
    assert await reader.names() == MANY


async def test_a_token_that_expires_is_told_and_read_anew_with_the_next_poll(
    reader: Reader, world: ProviderWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(world)
    world.server.token = "newer"
    await reader.poll()
    error = str((await reader.look()).error)
    assert "refuses us (401)" in error
    assert "good" not in error
    monkeypatch.setenv("PROVIDER_TOKEN", "newer")
    await reader.poll()
    assert await reader.names() == MANY


async def test_pages_that_change_while_they_are_read_lose_nothing(reader: Reader, world: ProviderWorld) -> None:
    plant(world)
    seen: list[int] = []

    def move(call: int) -> None:
        if world.server.paths[-1].endswith(LISTINGS) and len(seen) < 4:
            seen.append(call)
            world.server.put(MANY[len(seen)], "It was changed meanwhile.")
            world.server.put(f"new{len(seen)}")

    world.server.moves = move
    await reader.poll()
    assert len(seen) == 4
    await reader.poll()  # what was changed during a walk from the newest on is found by the next one
    assert await reader.names() == sorted([*MANY, *(f"new{n}" for n in range(1, 5))])


async def test_items_of_the_same_second_at_the_boundary_of_a_page_are_not_lost(
    reader: Reader, world: ProviderWorld
) -> None:
    for name in MANY:
        world.server.put(name, at=START)
    await reader.poll()
    assert await reader.names() == MANY
    world.server.put("late", at=START)
    await reader.poll()
    assert await reader.names() == [*MANY, "late"]


async def test_what_the_provider_shows_late_is_found_though_newer_things_were_seen_before(
    reader: Reader, world: ProviderWorld
) -> None:
    plant(world)
    await reader.poll()
    world.server.put("hidden", at=START - timedelta(minutes=4))
    await reader.poll()
    assert await reader.names() == ["hidden", *MANY]


async def test_what_is_known_is_listed_and_neither_fetched_nor_written_again(
    reader: Reader, world: ProviderWorld
) -> None:
    plant(world)
    await reader.poll()
    step, calls = (await reader.look()).step, len(world.server.paths)
    await reader.poll()
    await reader.compare()
    for path in world.server.paths[calls:]:
        assert path.endswith((*LISTINGS, "serverInfo", "myself", "mill", "/spaces", "/attachments", "-comments")), path
    looked = await reader.look()
    assert looked.step == step
    assert looked.listing is not None
    counts = [looked.listing[name] for name in ("there", "missing_count", "stale_count", "surplus_count")]
    assert counts == [len(MANY), 0, 0, 0]


async def test_an_item_that_is_changed_twice_in_one_second_comes_in_its_last_version(
    reader: Reader, world: ProviderWorld
) -> None:
    if world.kind.name == "confluence":
        pytest.skip("its pages have version numbers")
    now = datetime.now(UTC).replace(microsecond=0)
    world.server.put("one", "First.", at=now)
    await reader.poll()
    world.server.put("one", "Second.", at=now)
    await reader.poll()
    assert await reader.versions() == {"one": 2}


async def test_an_item_that_cannot_be_fetched_is_set_aside_alone_and_comes_when_it_can(
    reader: Reader, world: ProviderWorld
) -> None:
    plant(world)
    id_ = world.external(MANY[4]).replace("#", "/").rpartition("/")[2]

    async def is_about_it(request: web.Request) -> bool:
        return f"/{id_}/" in f"{request.path}/" or (request.method == "POST" and id_ in await request.text())

    world.server.fail_when = is_about_it
    await reader.poll()
    assert await reader.names() == [name for name in MANY if name != MANY[4]]
    (aside,) = [item for item in await reader.farm.items(reader.source) if item.state == "SET_ASIDE"]
    assert "failed (500)" in aside.error
    assert (await reader.look()).failures == 0
    world.server.fail_when = None
    await reader.compare()
    assert await reader.names() == MANY


async def test_a_server_that_is_in_trouble_with_everything_sets_nothing_aside(
    reader: Reader, world: ProviderWorld
) -> None:
    plant(world)
    world.server.fault = lambda request, call: None if call < 5 else web.Response(status=500)
    await reader.poll()
    assert (await reader.look()).failures == 1
    assert await reader.versions("SET_ASIDE") == {}


async def test_a_source_can_be_tested(reader: Reader, world: ProviderWorld) -> None:
    plant(world)
    async with reader.hands.opener.open(reader.source) as connector:
        assert (await connector.check()).endswith(".")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "7", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772446200"}, 7),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1772446200"}, 600),
        ({"X-RateLimit-Remaining": "12", "X-RateLimit-Reset": "1772446200"}, 60),
        ({"RateLimit-Reset": "1772445660"}, 60),
        ({"X-RateLimit-Reset": "2026-03-02T10:05:00Z"}, 300),
        ({"X-RateLimit-Reset": "2026-03-02T10:05Z"}, 300),
        ({"X-RateLimit-Reset": "1"}, 1),
        ({"X-RateLimit-Reset": "soon"}, 60),
        ({"X-RateLimit-Reset": "9" * 40}, 60),
        ({"Retry-After": "9999999"}, 86_400),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1972446200"}, 86_400),
        ({}, 60),
    ],
)
def test_every_way_to_say_when_to_come_again_is_understood(headers: dict[str, str], seconds: int) -> None:
    date = {"Date": "Mon, 02 Mar 2026 10:00:00 GMT"}
    assert read_wait(headers | date) == timedelta(seconds=seconds)
