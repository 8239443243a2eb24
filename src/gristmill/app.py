"""The composition root: the list of rooms, and how their handlers are opened."""

import importlib
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from gristmill.agents.executor import AgentExecutor
from gristmill.agents.room import ROOM as AGENTS
from gristmill.alarms.room import ROOM as ALARMS
from gristmill.db import Database
from gristmill.documents.room import ROOM as DOCUMENTS
from gristmill.errors import GristmillError, Refused
from gristmill.knowledge.room import ROOM as KNOWLEDGE
from gristmill.models import ModelPool
from gristmill.qualifier.room import ROOM as QUALIFIER_ALONE
from gristmill.qualifier.room import bind_handlers as bind_items
from gristmill.queue import Handler, Handlers
from gristmill.records.room import ROOM as RECORDS
from gristmill.rooms import Room, Tools, bind_rooms, prepare_rooms
from gristmill.settings import Settings
from gristmill.sources.link.room import ROOM as LINKS
from gristmill.sources.room import ROOM as SOURCES
from gristmill.web.room import ROOM as WEB


def bind_qualifier(tools: Tools) -> Sequence[Handler]:
    """Agents work on items where a model is configured; the qualifier itself does where none is."""
    return bind_items(tools, AgentExecutor(tools) if tools.settings.llm.model else None)


QUALIFIER = replace(QUALIFIER_ALONE, handlers=bind_qualifier)
ROOMS: Sequence[Room] = (DOCUMENTS, KNOWLEDGE, SOURCES, LINKS, RECORDS, QUALIFIER, AGENTS, WEB, ALARMS)
EXAMPLE = "write module:name, for example gristmill.app:handlers or examples/mill.py:handlers"


@asynccontextmanager
async def handlers(db: Database, settings: Settings, rooms: Sequence[Room] = ROOMS) -> AsyncGenerator[Handlers]:
    """The handlers of all rooms; the models that they work with are closed at the end."""
    async with ModelPool(settings) as models:
        yield bind_rooms(rooms, Tools(db, settings, models, rooms))


async def prepare(db: Database, settings: Settings, handlers: Handlers, rooms: Sequence[Room] = ROOMS) -> None:
    """Called once before workers with these handlers begin: prepares the rooms whose letters they answer."""
    await prepare_rooms(rooms, db, settings, handlers)


@asynccontextmanager
async def open_handlers(locator: str, db: Database, settings: Settings) -> AsyncGenerator[Handlers]:
    """The handlers at `module:name` or `file.py:name`: a mapping of them, or a function that makes one.

    A function may also make an asynchronous context manager, which closes at the end what its handlers have opened.
    """
    place, _, name = locator.rpartition(":")
    if not place or not name:
        raise Refused(f"“{locator}” does not say where the handlers are: {EXAMPLE}.")
    found = _find_name(_import_module(place), name)
    if not isinstance(found, Mapping) and callable(found):
        found = cast(Callable[[Database, Settings], Any], found)(db, settings)
    if isinstance(found, AbstractAsyncContextManager):
        async with cast(AbstractAsyncContextManager[Any], found) as opened:
            yield _check_handlers(opened, locator)
    else:
        yield _check_handlers(found, locator)


def _import_module(place: str) -> ModuleType:
    folder, name = (Path(place).parent, Path(place).stem) if place.endswith(".py") else (Path(), place)
    if place.endswith(".py") and not Path(place).is_file():
        raise Refused(f"There is no file {place}: {EXAMPLE}.")
    if (at := str(folder.resolve())) not in sys.path:
        sys.path.insert(0, at)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            raise Refused(f"There is no module {error.name} here: {EXAMPLE}.") from error
        raise Refused(f"The module {name} needs {error.name}, which is not installed.") from error
    except GristmillError:
        raise
    except Exception as error:
        raise Refused(f"The module {name} cannot be imported ({type(error).__name__}: {error}).") from error


def _find_name(module: ModuleType, name: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError:
        raise Refused(f"The module {module.__name__} has no {name}: {EXAMPLE}.") from None


def _check_handlers(found: Any, locator: str) -> Handlers:
    if isinstance(found, Mapping) and all(isinstance(one, Handler) for one in cast(Mapping[Any, Any], found).values()):
        return cast(Handlers, found)
    raise Refused(f"{locator} holds no handlers: bind them with bind(on(Letter, function), …).")
