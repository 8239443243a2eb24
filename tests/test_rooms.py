"""The contract of a room: a room that joins the list has its handlers run, its schedules fire and its checks asked."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from gristmill.app import ROOMS, handlers, prepare
from gristmill.db import Database, Tx
from gristmill.queue import Done, Handler, Worker, list_schedules, on
from gristmill.rooms import RecurringLetter, Room, Tools, ask_checks
from gristmill.settings import Settings
from gristmill.telemetry import Check


@dataclass(frozen=True)
class RingBell:
    kind: ClassVar[str] = "belfry.ring"
    times: int


@dataclass(frozen=True)
class OilBell:
    kind: ClassVar[str] = "belfry.oil"


class Belfry:
    """A room that the house does not have: its bell rings at noon."""

    def __init__(self) -> None:
        self.rung: list[int] = []
        self.has_rung = asyncio.Event()
        self.was_prepared = False
        self.room = Room(
            name="belfry",
            letters=(RingBell,),
            handlers=self.bind_handlers,
            prepare=self.prepare,
            schedules=(RecurringLetter("belfry.noon", RingBell(times=12), "0 12 * * *"),),
            checks=(self.check_bell,),
        )

    def bind_handlers(self, tools: Tools) -> list[Handler]:
        return [on(RingBell, self.ring)]

    async def ring(self, letter: RingBell) -> Done:
        self.rung.append(letter.times)
        self.has_rung.set()
        return Done()

    async def prepare(self, tx: Tx, settings: Settings) -> None:
        self.was_prepared = True

    async def check_bell(self, tx: Tx, settings: Settings) -> Check:
        asked = await tx.value("SELECT count(*) FROM task WHERE kind = %(kind)s", kind=RingBell.kind)
        return Check("belfry", "ok" if asked else "warn", f"The bell was asked to ring {asked} times.")


async def verdict(db: Database, rooms: Sequence[Room]) -> str:
    async with db.transaction() as tx:
        (found,) = [one.verdict for one in await ask_checks(rooms, tx, Settings()) if one.name == "belfry"]
    return found


async def test_a_room_that_joins_the_list_works_like_the_others(db: Database) -> None:
    belfry, settings = Belfry(), Settings()
    rooms = [*ROOMS, belfry.room]
    async with handlers(db, settings, rooms) as ours:
        await prepare(db, settings, ours, rooms)
        assert belfry.was_prepared
        assert await verdict(db, rooms) == "warn"
        async with db.transaction() as tx:
            stated = {one.name for room in rooms for one in room.schedules}
            assert {one.name for one in await list_schedules(tx)} == stated >= {"knowledge.tidy", "belfry.noon"}
            await tx.execute("UPDATE schedule SET next_at = clock() WHERE name = 'belfry.noon'")  # it is noon
        worker = Worker(db, ours, settings.queue)
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            group.create_task(worker.run())
            await belfry.has_rung.wait()
            worker.stop()
    assert belfry.rung == [12]
    assert await verdict(db, rooms) == "ok"


async def test_workers_that_answer_nothing_of_a_room_do_not_prepare_it(db: Database) -> None:
    belfry = Belfry()
    await prepare(db, Settings(), {}, [belfry.room])
    assert not belfry.was_prepared
    async with db.transaction() as tx:
        assert await list_schedules(tx) == []


async def test_a_room_that_names_a_letter_which_it_does_not_answer_is_a_mistake(db: Database) -> None:
    forgetful = replace(Belfry().room, letters=(RingBell, OilBell))
    with pytest.raises(ValueError, match=r"the room belfry .* belfry\.oil"):
        async with handlers(db, Settings(), [forgetful]):
            pass
