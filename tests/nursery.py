"""Keeps the child processes of a closed pool for the pools of later tests.

A pool belongs to one event loop, and the loop of a test ends with it. Each test that needs a child would start one, and
load its model again. In a worker a child serves many calls, and here, too: a pool that is closed hands its idle
children to the nursery, and the next pool takes a child whose first call was of the same module. A child is taken only
if it would be the same when it were new: with the same environment, folder and niceness.
"""

import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from gristmill.processes import pool
from gristmill.processes.pool import ProcessPool
from gristmill.settings import environment

MOST = 4  # children that wait, in each process of the tests
CALLS = 150  # of a child until it is replaced, less than those of any pool
VOLATILE = ("PYTEST_CURRENT_TEST",)  # of the environment: it changes with each test

_run = ProcessPool.run
_module: ContextVar[str] = ContextVar("the module of the function that is called", default="")


@dataclass(frozen=True)
class Sort:
    """What makes two children alike."""

    module: str
    nice: int
    folder: str
    path: tuple[str, ...]
    environment: dict[str, str] = field(hash=False)


@dataclass
class Kept:
    """A child that waits, and our end of its pipe."""

    sort: Sort
    process: subprocess.Popen[bytes]
    pipe: socket.socket
    calls: int
    confined: bool

    @property
    def is_well(self) -> bool:
        """It lives, and has nothing to say."""
        poll = select.poll()
        poll.register(self.pipe, select.POLLIN)
        return self.process.poll() is None and not poll.poll(0)

    def end(self) -> None:
        self.pipe.close()
        self.process.wait()


class Nursery:
    def __init__(self) -> None:
        self.is_open = False
        self._kept: list[Kept] = []  # the one that came last at the end

    def put(self, kept: Kept) -> None:
        self._kept.append(kept)
        while len(self._kept) > MOST:
            self._kept.pop(0).end()

    def take(self, sort: Sort) -> Kept | None:
        """A child of this sort; those that died meanwhile are put away."""
        for kept in reversed(self._kept):
            if kept.sort == sort:
                self._kept.remove(kept)
                if kept.is_well:
                    return kept
                kept.end()
        return None

    def clear(self) -> None:
        while self._kept:
            self._kept.pop().end()


NURSERY = Nursery()


class KeptChild(pool._Child):  # pyright: ignore[reportPrivateUsage]
    """A child that comes from the nursery and goes there, where one may."""

    def __init__(self, nice: int) -> None:
        self._sort = make_sort(nice)
        self._kept = NURSERY.take(self._sort) if NURSERY.is_open else None
        self._leaves = False
        super().__init__(nice)
        if self._kept is not None:
            self.calls, self._confined = self._kept.calls, self._kept.confined

    def _begin(self, nice: int) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        return (self._kept.pipe, self._kept.process) if self._kept is not None else super()._begin(nice)

    async def connect(self) -> None:
        if self._kept is None:
            return await super().connect()
        await self._loop.create_unix_connection(lambda: self, sock=self._pipe)
        return None

    def retire(self) -> None:
        is_idle = self._reply is None or self._reply.done()
        is_ours = threading.current_thread() is threading.main_thread()  # a child dies with the thread that started it
        can_go_on = NURSERY.is_open and is_ours and is_idle and 0 <= self.calls < CALLS and not self._received
        if not can_go_on or not self.usable or self._transport is None:
            return super().retire()
        self.usable = False
        self._leaves = True
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        NURSERY.put(Kept(self._sort, self._process, self._pipe.dup(), self.calls, self._confined))
        self._transport.abort()  # closes our copy of the pipe alone
        return None

    def kill(self) -> None:
        if not self._leaves:
            super().kill()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._leaves:
            return super().connection_lost(exc)
        self._transport = None
        self.gone.set_result(None)
        return None


def make_sort(nice: int) -> Sort:
    kept = {key: value for key, value in environment().items() if key not in VOLATILE}
    return Sort(_module.get(), nice, os.getcwd(), tuple(sys.path), kept)


async def run_noted(self: ProcessPool, function: Callable[..., Any], *args: Any, **terms: Any) -> Any:
    token = _module.set(function.__module__)
    try:
        return await _run(self, function, *args, **terms)
    finally:
        _module.reset(token)


def open_nursery() -> None:
    pool._Child = KeptChild  # pyright: ignore[reportPrivateUsage]
    ProcessPool.run = run_noted
    NURSERY.is_open = True
