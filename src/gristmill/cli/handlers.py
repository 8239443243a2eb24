"""Opens the handlers that a command names: those of all rooms, or of a program of somebody else."""

import importlib
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from gristmill.db import Database
from gristmill.doors import load_for_good
from gristmill.errors import GristmillError, Refused
from gristmill.queue import Handler, Handlers
from gristmill.settings import Settings

EXAMPLE = "write module:name, for example gristmill.app:handlers or examples/mill.py:handlers"


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
        with load_for_good():
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


def list_served(handlers: Handlers, locator: str) -> list[str]:
    """The queues that these handlers answer."""
    if not handlers:
        raise Refused(f"{locator} binds no handlers yet: name yours with --app module:name.")
    return sorted({handler.queue for handler in handlers.values()})


async def prepare_rooms_of(handlers: Handlers, db: Database, settings: Settings) -> None:
    """Called once before workers with these handlers begin: prepares the rooms whose letters they answer."""
    if any(handler.letter.__module__.startswith("gristmill.") for handler in handlers.values()):
        with load_for_good():
            from gristmill.app import prepare  # noqa: PLC0415 it loads all rooms, and others' workers need none

        await prepare(db, settings, handlers)
