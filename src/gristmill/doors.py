"""Keeps the doors of rooms closed until a name is asked for, in commands and in child processes.

A call that reads a page needs one module of a room. To import it, Python first runs the door of the room, which imports
all that the room shows: half a second and 60 MB, in each child. A door is a list of names and of the modules that have
them. Here it is read as such a list: whoever asks for a name gets it from its module, and no other module is imported.
"""

import ast
import gc
import importlib
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:  # the bases of finders and loaders bring much, and are not needed
    from importlib.abc import Loader

HOUSE = "gristmill."


def keep_doors_closed() -> None:
    """From now on, doors are read instead of run. To be called before the first of them has run."""
    if not _are_closed():
        sys.meta_path.insert(0, _Finder())


def _are_closed() -> bool:
    return any(isinstance(one, _Finder) for one in sys.meta_path)


@contextmanager
def load_for_good() -> Generator[None]:
    """Import modules without collecting garbage: what is imported stays until the process ends.

    The collector would look through all of it again and again, which takes a sixth of the time that a command needs to
    begin. In a process whose doors are closed, and which is thus all ours, it also never looks through it later.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if _are_closed():
            gc.freeze()
        gc.enable()


class _Finder:
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if not fullname.startswith(HOUSE):
            return None
        found = PathFinder.find_spec(fullname, path, target)
        if found is not None and found.loader is not None and found.submodule_search_locations is not None:
            found.loader = cast("Loader", _ClosedLoader(found.loader))
        return found


class _ClosedLoader:
    """Makes a package that has not run yet."""

    def __init__(self, loader: "Loader") -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Door(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        module.__loader__ = module.__spec__.loader = self._loader  # files beside the module are found by it


class _Door(ModuleType):
    """A package: a name that it shows comes from where its door has it. Only a name that it makes itself runs it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "_is_open" in self.__dict__:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if place := self._places.get(name):
            self.__dict__[name] = _fetch(*place)
        elif not _is_module(self, name):
            self._open()
        return self.__dict__[name] if name in self.__dict__ else self.__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Python puts each module behind the door here. The door may show another thing under that name: that stays."""
        if not isinstance(value, ModuleType) or name not in self._places:
            super().__setattr__(name, value)

    @property
    def _places(self) -> dict[str, tuple[str, str]]:
        if "_shown" not in self.__dict__:
            self.__dict__["_shown"] = _read_door(self)
        return self.__dict__["_shown"]

    def _open(self) -> None:
        self.__dict__["_is_open"] = True
        assert self.__spec__ is not None
        assert self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)


def _read_door(door: ModuleType) -> dict[str, tuple[str, str]]:
    """For each name that the door imports, the module that has it, and its name there; without modules behind it."""
    with open(door.__file__ or "", "rb") as file:
        tree = ast.parse(file.read())
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module and node.module != door.__name__
        for alias in node.names
    }


def _fetch(module: str, name: str) -> Any:
    found = importlib.import_module(module)
    return getattr(found, name) if hasattr(found, name) else importlib.import_module(f"{module}.{name}")


def _is_module(door: ModuleType, name: str) -> bool:
    """Whether a module behind the door has this name; it is imported, and then an attribute of the package."""
    full = f"{door.__name__}.{name}"
    try:
        importlib.import_module(full)
    except ModuleNotFoundError as error:
        if error.name == full:
            return False
        raise
    return True
