"""Runs that a task carries: a background run gives way to people, and goes on from where it was."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from desk_work import PROJECT, state_of

from gristmill.agents import RunWish, start_run
from gristmill.agents.letters import BACKGROUND_KEY, SERIAL_KEY, RunAgent
from gristmill.agents.run_handle import RunHandle, WorkspaceOpener
from gristmill.agents.running import RunCarrier
from gristmill.agents.runs import abandon_runs, note_host
from gristmill.db import Database
from gristmill.ids import RunId, TaskId
from gristmill.models import FakeEmbedder, FakeLlm
from gristmill.qualifier import RequestWatch, announce_request
from gristmill.queue import Done, Skip, Snooze, cancel
from gristmill.queue.context import ChildMember, Running, set_current
from gristmill.rooms import Tools
from gristmill.settings import Settings


class Course:
    """A course that hangs until it is let go."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()
        self.was_cancelled = False

    async def run(self, handle: RunHandle) -> str:
        self.reached.set()
        try:
            await self.go_on.wait()
        except asyncio.CancelledError:
            self.was_cancelled = True
            raise
        return "It was looked at."


@pytest.fixture
def course() -> Course:
    return Course()


@pytest.fixture
def carrier(db: Database, tmp_path: Any, course: Course) -> RunCarrier:
    embedder = FakeEmbedder()
    models: Any = SimpleNamespace(
        embedder=embedder, built_in_embedder=embedder, llm=FakeLlm(""), reading_processes=None
    )
    tools = Tools(db, Settings(data=tmp_path), models)
    return RunCarrier(tools, course.run, watch=RequestWatch(db))


async def start(db: Database, *, foreground: bool) -> RunId:
    async with db.transaction() as tx:
        return await start_run(tx, RunWish("Look at it.", asked_by="anna", scope=PROJECT, foreground=foreground))


async def carry(carrier: RunCarrier, run: RunId) -> Any:
    set_current(Running([ChildMember(TaskId(1), 1)], lambda *_: None))
    return await carrier.carry(RunAgent(run))


async def ask_for_something(db: Database) -> None:
    async with db.transaction() as tx:
        await announce_request(tx, by="anna")


async def test_a_background_run_gives_way_to_a_person_and_goes_on_in_silence(
    db: Database, carrier: RunCarrier, course: Course
) -> None:
    run = await start(db, foreground=False)
    carrying = asyncio.create_task(carry(carrier, run))
    await course.reached.wait()
    await ask_for_something(db)
    assert isinstance(await carrying, Snooze)
    assert course.was_cancelled
    assert (await state_of(db, run)).state == "queued"
    course.go_on.set()
    again = await carry(carrier, run)
    assert isinstance(again, Snooze)
    assert again.reason == "a person asked for something: it goes on when nobody does"
    async with db.transaction() as tx:
        await tx.execute("UPDATE person_request SET at = at - interval '1 minute'")  # pyright: ignore[reportArgumentType]
    assert isinstance(await carry(carrier, run), Done)


async def test_a_run_that_a_person_waits_for_is_not_interrupted(
    db: Database, carrier: RunCarrier, course: Course
) -> None:
    run = await start(db, foreground=True)
    carrying = asyncio.create_task(carry(carrier, run))
    await course.reached.wait()
    await ask_for_something(db)
    course.go_on.set()
    assert isinstance(await carrying, Done)
    assert not course.was_cancelled


async def test_a_run_goes_on_where_its_workspace_is_also_if_that_machine_got_another_name(
    db: Database, carrier: RunCarrier, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await start(db, foreground=True)
    course.go_on.set()
    opener = WorkspaceOpener(db, carrier.tools.settings, await state_of(db, run))
    await opener.open()
    monkeypatch.setattr("gristmill.agents.workspaces.host_name", lambda: "renamed")
    assert isinstance(await carry(carrier, run), Done)


async def test_a_run_whose_workspace_is_lost_ends_with_a_sentence(
    db: Database, carrier: RunCarrier, course: Course
) -> None:
    run = await start(db, foreground=True)
    async with db.transaction() as tx:
        await note_host(tx, run, "elsewhere")
    answer = await carry(carrier, run)
    assert isinstance(answer, Skip)
    assert "is on elsewhere, where no worker is at work" in str(answer.reason)


async def test_runs_whose_task_ended_without_them_are_over(db: Database) -> None:
    going, cancelled, gone = [await start(db, foreground=True) for _ in range(3)]
    tasks = {run: (await state_of(db, run)).task for run in (cancelled, gone)}
    async with db.transaction() as tx:
        await cancel(tx, [tasks[cancelled]], reason="nobody wants it")  # pyright: ignore[reportArgumentType]
        await tx.execute("UPDATE agent_run SET task = 999999 WHERE id = %(id)s", id=gone)  # pyright: ignore[reportArgumentType]
    async with db.transaction() as tx:
        assert await abandon_runs(tx) == 2
    assert [(await state_of(db, run)).state for run in (going, cancelled, gone)] == ["queued", "stopped", "failed"]
    assert (await state_of(db, gone)).error == "Its task is gone."


async def test_a_background_run_that_waits_for_silence_is_in_nobodys_way(db: Database) -> None:
    for foreground in (False, True):
        await start(db, foreground=foreground)
    async with db.reading() as tx:
        keys = await tx.values("SELECT serial_key FROM task ORDER BY id", str)  # pyright: ignore[reportArgumentType]
    assert keys == [BACKGROUND_KEY, SERIAL_KEY]
