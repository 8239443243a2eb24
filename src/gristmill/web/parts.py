"""Finds everything that is served: the files of web/api and web/console, and `<room>/web.py` of every room.

A file of web/api has a constant ROUTES, a page of web/console has PAGES and MENU, a room has WEB. A new file is served
because it lies there: nothing else needs a line.
"""

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from fastapi import APIRouter

from gristmill.serving import MenuEntry, WebPart

HOUSE = Path(__file__).parents[1]


def find_parts(rooms: Iterable[str]) -> Sequence[WebPart]:
    """Of web itself, and of the rooms with these names."""
    return [*find_own_parts(), *(part for room in rooms if (part := find_part_of(room)))]


def find_own_parts() -> Iterator[WebPart]:
    for module in import_all("gristmill.web.api"):
        if routes := getattr(module, "ROUTES", None):
            yield WebPart(api=[check_router(routes, module)])
    for module in import_all("gristmill.web.console"):
        pages: APIRouter | None = getattr(module, "PAGES", None)
        menu: Sequence[MenuEntry] = getattr(module, "MENU", ())
        if pages or menu:
            yield WebPart(console=[check_router(pages, module)] if pages else (), menu=menu)


def check_router(found: object, module: ModuleType) -> APIRouter:
    if not isinstance(found, APIRouter):
        raise TypeError(f"{module.__name__} must hold a router, not {type(found).__name__}")
    return found


def import_all(package: str) -> Iterator[ModuleType]:
    """The modules of a package, in the order of their names."""
    folder = importlib.import_module(package)
    for found in sorted(pkgutil.iter_modules(folder.__path__), key=lambda one: one.name):
        yield importlib.import_module(f"{package}.{found.name}")


def find_part_of(room: str) -> WebPart | None:
    """The constant WEB of `<room>/web.py`, if the room has that file."""
    name = f"gristmill.{room}"
    if not (HOUSE / room).is_dir() or find_spec(f"{name}.web") is None:
        return None
    part = importlib.import_module(f"{name}.web").WEB
    if not isinstance(part, WebPart):
        raise TypeError(f"{name}.web.WEB must be a WebPart, not {type(part).__name__}")
    return part
