"""What a handler forks is no worker: the copy ends when it leaves the handler, and its parent goes on as before."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from crew import PATIENCE, ask, sent, worked
from engine import Grind, audit

from gristmill.db import Database
from gristmill.processes.forks import LEFT
from gristmill.queue import on


def end_of(pid: int) -> int | None:
    """Its exit code; None while it lives."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def await_end(pid: int) -> int:
    deadline = time.monotonic() + PATIENCE
    while (code := end_of(pid)) is None:
        assert time.monotonic() < deadline, "the copy lives on"
        time.sleep(0.01)
    return code


async def returns(letter: Grind) -> int | None:
    pid = os.fork()
    return await_end(pid) if pid else None


async def raises(letter: Grind) -> int:
    pid = os.fork()
    if pid == 0:
        raise ValueError("from a copy")
    return await_end(pid)


async def awaits(letter: Grind) -> int:
    pid = os.fork()
    if pid == 0:
        await asyncio.sleep(0)
    return await_end(pid)


def in_a_thread(letter: Grind) -> int | None:
    pid = os.fork()
    return await_end(pid) if pid else None


@pytest.mark.parametrize("handler", [returns, raises, awaits, in_a_thread])
async def test_a_copy_of_the_worker_ends_when_it_leaves_the_handler(
    db: Database, handler: Callable[..., Awaitable[Any] | Any]
) -> None:
    tasks = [await sent(db, Grind(n)) for n in range(3)]
    await worked(db, on(Grind, handler), concurrency=1)
    rows = await ask(db, "SELECT id, status, result, attempts FROM tasks ORDER BY id")
    assert [tuple(row) for row in rows] == [(task, "completed", LEFT, 1) for task in tasks]
    async with db.transaction() as tx:
        await audit(tx)


async def test_a_copy_of_a_child_process_gives_no_second_answer(db: Database) -> None:
    tasks = [await sent(db, Grind(n)) for n in range(3)]
    await worked(db, on(Grind, in_a_thread, process=True), concurrency=1)
    rows = await ask(db, "SELECT id, status, result, attempts FROM tasks ORDER BY id")
    assert [tuple(row) for row in rows] == [(task, "completed", LEFT, 1) for task in tasks]


def ends_itself(letter: Grind) -> int:
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    return await_end(pid)


async def test_a_copy_that_ends_within_the_handler_is_nobodys_business(db: Database) -> None:
    await sent(db, Grind())
    await worked(db, on(Grind, ends_itself))
    assert [row.result for row in await ask(db, "SELECT result FROM tasks")] == [7]
