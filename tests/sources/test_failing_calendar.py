"""A calendar server that fails on purpose, between us and a real one: it costs a delay, and nothing else."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from calendar_server import PASSWORD, Radicale
from fake_server import Fault, fail_never, open_site
from farm import Farm, a_farm
from worlds import CalDavWorld

from gristmill.db import Database
from gristmill.queue import Done, Snooze
from gristmill.sources.calendar import caldav
from gristmill.sources.kinds import KINDS
from gristmill.sources.model import Source

MANY = [f"k{n:02}" for n in range(12)]


class Between:
    """Hands every call on to the real server, unless `fault` has another answer; `cut` keeps the end of one back."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.fault: Fault = fail_never
        self.cut = 0  # the call whose answer is cut in half
        self.calls = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.calls += 1
        if (wrong := self.fault(request, self.calls)) is not None:
            return wrong
        kept = {name: request.headers[name] for name in ("Authorization", "Depth", "Content-Type")}
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                request.method, self.target + request.path, data=await request.read(), headers=kept
            ) as said,
        ):
            body = await said.read()
        shown = body[: len(body) // 2] if self.calls == self.cut else body
        return web.Response(status=said.status, body=shown, content_type="application/xml")


@pytest.fixture
async def world(radicale: Radicale, monkeypatch: pytest.MonkeyPatch) -> CalDavWorld:
    monkeypatch.setenv("CALENDAR_PASSWORD", PASSWORD)
    monkeypatch.setattr(caldav, "AT_ONCE", 4)
    world = CalDavWorld(radicale)
    for key in MANY:
        await world.put(key)
    return world


@pytest.fixture
async def between(world: CalDavWorld, radicale: Radicale) -> AsyncIterator[Between]:
    middle = Between(f"http://127.0.0.1:{radicale.port}")
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", middle.answer)
    async with open_site(app) as url:
        world.options["url"] = f"{url}/anna/{world.calendar}/"
        yield middle


@pytest.fixture
async def farm(db: Database, tmp_path: Path) -> AsyncIterator[Farm]:
    async with a_farm(db, tmp_path) as opened:
        yield opened


async def poll(farm: Farm, source: Source) -> Any:
    answer = await farm.by_hand(KINDS).poll(source)
    if isinstance(answer, Done) and answer.write is not None:
        async with farm.db.transaction() as tx:
            await answer.write(tx)
    return answer


async def check_all_came_once(farm: Farm, source: Source) -> None:
    assert isinstance(await poll(farm, source), Done)
    items = await farm.items(source)
    assert [item.version for item in items] == [1] * len(MANY)
    assert (await farm.look(source)).failures == 0


@pytest.mark.parametrize("call", [1, 2, 3, 4])
async def test_an_error_anywhere_costs_a_delay_and_what_came_before_is_kept(
    farm: Farm, world: CalDavWorld, between: Between, call: int
) -> None:
    source = await farm.add("caldav", **world.options)
    between.fault = lambda request, n: web.Response(status=500) if n == call else None
    assert isinstance(await poll(farm, source), Snooze)
    assert "failed (500)" in str((await farm.look(source)).error)
    assert len(await farm.items(source)) == 4 * max(call - 3, 0)
    await check_all_came_once(farm, source)


@pytest.mark.parametrize(("headers", "wait"), [({"Retry-After": "600"}, 600), ({}, 60)], ids=["said", "unsaid"])
async def test_a_limit_puts_the_calendar_off_and_is_not_called_broken(
    farm: Farm, world: CalDavWorld, between: Between, headers: dict[str, str], wait: int
) -> None:
    source = await farm.add("caldav", **world.options)
    between.fault = lambda request, n: web.Response(status=429, headers=headers) if n == 4 else None
    answer = await poll(farm, source)
    assert isinstance(answer, Snooze)
    assert answer.wait == timedelta(seconds=wait)
    looked = await farm.look(source)
    assert (looked.failures, looked.waits_until is not None) == (0, True)
    await check_all_came_once(farm, source)


@pytest.mark.parametrize("call", [1, 2, 4])
async def test_an_answer_that_is_cut_off_is_asked_for_again(
    farm: Farm, world: CalDavWorld, between: Between, call: int
) -> None:
    source = await farm.add("caldav", **world.options)
    between.cut = call
    assert isinstance(await poll(farm, source), Snooze)
    assert "was cut off" in str((await farm.look(source)).error)
    await check_all_came_once(farm, source)


async def test_events_that_come_and_go_while_the_calendar_is_read_cost_no_other(
    farm: Farm, world: CalDavWorld, between: Between
) -> None:
    source = await farm.add("caldav", **world.options)

    def move(request: web.Request, n: int) -> None:
        if n == 4:  # the listing was read, and some of its events
            world.radicale.call("DELETE", world.calendar, f"{MANY[-1]}.ics")

    between.fault = move
    await poll(farm, source)
    await world.put("late")
    assert isinstance(await poll(farm, source), Done)
    await farm.by_hand(KINDS).compare(source)
    rows = await farm.rows("SELECT external FROM source_item WHERE source = %(id)s AND NOT leaving", id=source.id)
    names = {row.external.rpartition("/")[2].removesuffix(".ics") for row in rows}
    assert names == {*MANY[:-1], "late"}
