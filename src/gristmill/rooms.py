"""The contract of a room: what it gives the house so that workers, the doctor and alarms know it.

A room fulfils the contract in its file `<room>/room.py`, with one constant `ROOM`. Two things need no line there,
because they are found by their place: the settings of a room are the file `settings/<room>.py`, its tables, views and
functions are the folder `<room>/schema`. Routes and pages come with web.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from gristmill.db import Database, Embedded, Tx, examine_database, plainly
from gristmill.errors import GristmillError
from gristmill.models import ModelPool
from gristmill.queue import Handler, Handlers, Letter, add_schedule, bind, examine_queues
from gristmill.settings import Settings
from gristmill.telemetry import Check, Finding


@dataclass(frozen=True)
class Tools:
    """The things that handlers work with, open for as long as the handlers are used."""

    db: Database
    settings: Settings
    models: ModelPool
    rooms: "Sequence[Room]" = ()  # all rooms, for the one that looks after them: alarms


@dataclass(frozen=True)
class RecurringLetter:
    """A letter that a room sends again and again, at the times of a cron expression."""

    name: str
    letter: Letter
    cron: str


Prepare = Callable[[Tx, Settings], Awaitable[None]]
Examine = Callable[[Tx, Settings], Awaitable[Check]]


@dataclass(frozen=True)
class Watch:
    """Looks for things that a person should know of, every minute.

    `rules` names the rules that its findings may have: an alarm of one of them that is not found any more is over.
    It only reads, and what it costs must not grow with what is stored.
    """

    rules: Sequence[str]
    find: Callable[[Tx, Settings], Awaitable[Sequence[Finding]]]


@dataclass(frozen=True)
class Room:
    """Everything that the house asks of a room.

    `letters` are the letters that the room answers, and `handlers` binds each of them once. A worker that answers one
    of them prepares the room before it begins: it calls `prepare` and states the schedules. A worker that answers none
    of them leaves the room alone. The doctor asks `checks` when the schema of the database is up to date.
    `alarms` are looked at every minute.
    """

    name: str
    letters: Sequence[type[Letter]]
    handlers: Callable[[Tools], Sequence[Handler]]
    prepare: Prepare | None = None
    schedules: Sequence[RecurringLetter] = ()
    checks: Sequence[Examine] = ()
    alarms: Sequence[Watch] = ()

    def is_answered_by(self, handlers: Handlers) -> bool:
        """Whether any of the room's letters has a handler among these."""
        return any(letter.kind in handlers for letter in self.letters)


def bind_rooms(rooms: Iterable[Room], tools: Tools) -> Handlers:
    """The handlers of all these rooms, by the kind of letter that they answer."""
    return bind(*(handler for room in rooms for handler in _bind_room(room, tools)))


def _bind_room(room: Room, tools: Tools) -> Sequence[Handler]:
    handlers = room.handlers(tools)
    answered, named = {handler.letter.kind for handler in handlers}, {letter.kind for letter in room.letters}
    if answered != named:
        kinds = ", ".join(sorted(answered ^ named))
        raise ValueError(f"the room {room.name} must name the letters that it answers, and answer those: {kinds}")
    return handlers


async def prepare_rooms(rooms: Iterable[Room], db: Database, settings: Settings, handlers: Handlers) -> None:
    """Prepare the rooms that workers with these handlers answer for, in one transaction."""
    async with db.transaction() as tx:
        for room in rooms:
            if room.is_answered_by(handlers):
                await _prepare_room(room, tx, settings)


async def _prepare_room(room: Room, tx: Tx, settings: Settings) -> None:
    if room.prepare:
        await room.prepare(tx, settings)
    for one in room.schedules:
        # replacing keeps what an operator has set: a schedule that was disabled stays disabled
        # patient: where no worker serves the room, its letters do not pile up
        await add_schedule(tx, one.name, one.letter, cron=one.cron, replace=True, patient=True)


async def examine(settings: Settings, rooms: Iterable[Room]) -> list[Check]:
    """Everything that the doctor looks at, as far as one can look: without a database, only that it is missing."""
    readable = Check("settings", "ok", "All settings can be read.")
    try:
        with plainly():
            return [readable, *await _examine_all(settings, rooms)]
    except GristmillError as error:
        # other commands advise to run the doctor, who must not advise it again
        sentence = str(error).replace(": run gristmill doctor.", ".")
        advice = "Start the server, or mend GRISTMILL_DATABASE_URL." if settings.database_url else ""
        return [readable, Check("database", "fail", sentence, advice)]


async def _examine_all(settings: Settings, rooms: Iterable[Room]) -> list[Check]:
    url = settings.database_url or await asyncio.to_thread(Embedded(settings.data).start)
    async with await Database(url).connect("doctor") as connection:
        checks, schema = await examine_database(connection, settings)
        if not schema.fits:
            return checks
        tx = Tx(connection)
        return [*checks, *await examine_queues(tx, settings.queue), *await ask_checks(rooms, tx, settings)]


async def ask_checks(rooms: Iterable[Room], tx: Tx, settings: Settings) -> list[Check]:
    """The answers to everything that these rooms let the doctor ask."""
    return [await check(tx, settings) for room in rooms for check in room.checks]
