"""The composition root: finding the handlers that a name means."""

import sys

import pytest

from gristmill.app import handlers, prepare
from gristmill.cli.handlers import open_handlers
from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.knowledge import vectors
from gristmill.models import FakeEmbedder
from gristmill.queue import enable_schedule, list_schedules
from gristmill.settings import Settings

DB = Database("postgresql:///nowhere")  # nothing here connects
MODULE = """
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import ClassVar
from gristmill.queue import bind, on

@dataclass(frozen=True)
class Grind:
    kind: ClassVar[str] = "mill.grind"

async def grind(letter):
    return None

mapping = bind(on(Grind, grind))
number = 7

def function(db, settings):
    return mapping

seen = []

@asynccontextmanager
async def context(db, settings):
    seen.append("opened")
    yield mapping
    seen.append("closed")

@asynccontextmanager
async def empty_context(db, settings):
    yield None
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a module, which is the current one."""
    (tmp_path / "windmill.py").write_text(MODULE)
    (tmp_path / "broken_mill.py").write_text("1 / 0")
    (tmp_path / "needy_mill.py").write_text("import a_stone_that_is_not_there")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    monkeypatch.delitem(sys.modules, "windmill", raising=False)
    return tmp_path


@pytest.mark.parametrize(
    "locator",
    ["windmill:mapping", "windmill:function", "windmill.py:mapping", "./windmill.py:function", "windmill:context"],
)
async def test_handlers_are_found_by_module_and_by_file(place, locator):
    async with open_handlers(locator, DB, Settings()) as found:
        assert list(found) == ["mill.grind"]


async def test_what_handlers_have_opened_is_closed_at_the_end(place):
    async with open_handlers("windmill:context", DB, Settings()):
        import windmill  # noqa: PLC0415 it is there for the time of this test

        assert windmill.seen == ["opened"]
    assert windmill.seen == ["opened", "closed"]


@pytest.mark.parametrize(
    ("locator", "sentence"),
    [
        ("windmill", "does not say where the handlers are"),
        ("watermill:mapping", "There is no module watermill here"),
        ("watermill.py:mapping", "There is no file watermill.py"),
        ("windmill:nothing", "The module windmill has no nothing"),
        ("windmill:number", "windmill:number holds no handlers"),
        ("windmill:empty_context", "windmill:empty_context holds no handlers"),
        ("broken_mill:mapping", r"cannot be imported \(ZeroDivisionError: division by zero\)"),
        ("needy_mill:mapping", "needs a_stone_that_is_not_there, which is not installed"),
    ],
)
async def test_what_cannot_be_found_is_refused_in_one_sentence(place, locator, sentence):
    with pytest.raises(Refused, match=sentence):
        async with open_handlers(locator, DB, Settings()):
            pass


async def test_the_default_handlers_can_be_loaded():
    async with open_handlers(Settings().app, DB, Settings()) as found, handlers(DB, Settings()) as ours:
        assert found.keys() == ours.keys()


async def test_workers_begin_to_fill_the_model_of_the_settings_where_another_was_used(db):
    async with db.transaction() as tx:
        await vectors.register(tx, FakeEmbedder())
    await prepare(db, Settings(), {})  # they answer nothing about knowledge: it is not theirs to begin
    async with handlers(db, Settings()) as ours:
        await prepare(db, Settings(), ours)
    async with db.transaction() as tx:
        rows = await tx.all("SELECT payload FROM task WHERE kind = 'knowledge.fill'")
    assert [row.payload for row in rows] == [{"model": "all-MiniLM-L6-v2", "after": 0}]


async def test_workers_state_that_terms_are_tidied_every_hour_and_keep_it_as_it_was_set(db):
    await prepare(db, Settings(), {})
    async with handlers(db, Settings()) as ours:
        for _ in range(2):
            await prepare(db, Settings(), ours)
            async with db.transaction() as tx:
                await enable_schedule(tx, "knowledge.tidy", False)
    async with db.transaction() as tx:
        (tidying,) = [one for one in await list_schedules(tx) if one.name == "knowledge.tidy"]
    assert (tidying.kind, tidying.enabled) == ("knowledge.tidy", False)
