"""The composition root: what answers which letter."""

import importlib
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from gristmill.db import Database
from gristmill.documents import Tools, document_handlers
from gristmill.errors import GristmillError, Refused
from gristmill.knowledge.lexicon import fold_terms, schedule_tidying, tidy_terms
from gristmill.knowledge.vectors import choose_model, fill_vectors
from gristmill.models import ModelPool, get_embedder_name
from gristmill.queue import Handler, Handlers, bind, on
from gristmill.settings import Settings
from gristmill.tasks import FillVectors, FoldTerms, TidyTerms

EXAMPLE = "write module:name, for example gristmill.app:handlers or examples/mill.py:handlers"


@asynccontextmanager
async def handlers(db: Database, settings: Settings) -> AsyncGenerator[Handlers]:
    """Every handler of Gristmill itself, and for as long as they are used what they work with."""
    async with ModelPool(settings) as models:
        yield handlers_at(models, db, settings)


def handlers_at(models: ModelPool, db: Database, settings: Settings) -> Handlers:
    """Each room binds its own here."""
    spool = settings.data / "spool"
    tools = Tools(
        db,
        models.reading_processes,
        models.embedding_processes,
        spool,
        models.embedder,
        models.extractor,
        settings.documents,
        [models.built_in_embedder],
    )
    folding = on(FoldTerms, partial(fold_terms, db=db)), on(TidyTerms, partial(tidy_terms, db=db))
    filling = on(FillVectors, partial(fill_vectors, db=db, embedder=models.embedder))
    return bind(*document_handlers(tools), *folding, filling)


async def begin(db: Database, settings: Settings, answered: Handlers) -> None:
    """What workers with these handlers see to before they begin: that knowledge is kept as the settings say."""
    if FillVectors.kind in answered:
        async with db.transaction() as tx:
            await choose_model(tx, get_embedder_name(settings.embedding))
            await schedule_tidying(tx)


@asynccontextmanager
async def open_handlers(locator: str, db: Database, settings: Settings) -> AsyncGenerator[Handlers]:
    """The handlers at `module:name` or `file.py:name`: a mapping of them, or a function that makes one.

    A function that makes an asynchronous context manager can close at the end what its handlers have opened.
    """
    place, _, name = locator.rpartition(":")
    if not place or not name:
        raise Refused(f"“{locator}” does not say where the handlers are: {EXAMPLE}.")
    found = _named(_module(place), name)
    if not isinstance(found, Mapping) and callable(found):
        found = cast(Callable[[Database, Settings], Any], found)(db, settings)
    if isinstance(found, AbstractAsyncContextManager):
        async with cast(AbstractAsyncContextManager[Any], found) as opened:
            yield _handlers(opened, locator)
    else:
        yield _handlers(found, locator)


def _module(place: str) -> ModuleType:
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


def _named(module: ModuleType, name: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError:
        raise Refused(f"The module {module.__name__} has no {name}: {EXAMPLE}.") from None


def _handlers(found: Any, locator: str) -> Handlers:
    if isinstance(found, Mapping) and all(isinstance(one, Handler) for one in cast(Mapping[Any, Any], found).values()):
        return cast(Handlers, found)
    raise Refused(f"{locator} holds no handlers: bind them with bind(on(Letter, function), …).")
