"""Runs blocking functions in daemon threads: one that hangs blocks neither its place nor the exit."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from gristmill.errors import Transient
from gristmill.processes import end_copy, fork_generation

R = TypeVar("R")

ABANDONED = 3  # threads that may hang, for each that may work

Job = Callable[[], None]


class DaemonThreads:
    """At most `size` calls at once, served in order; a call whose caller was cancelled no longer counts.

    Nobody can end a thread: the abandoned one runs on and its answer is dropped. When 4 × `size` threads are
    busy, all but `size` of them abandoned, new calls wait. Belongs to one event loop.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._callers = asyncio.Semaphore(size)
        self._threads = asyncio.Semaphore(size * (1 + ABANDONED))
        self._idle: list[SimpleQueue[Job | None]] = []
        self._closed = False
        self._born = fork_generation()

    async def run(self, function: Callable[..., R], *args: Any) -> R:
        """Calls the function in a thread, with the caller's context variables."""
        async with self._callers:
            await self._threads.acquire()  # released when the function returns, be its caller still there or not
            if self._closed:
                self._threads.release()
                raise Transient("the threads were closed")
            answer: asyncio.Future[R] = asyncio.get_running_loop().create_future()
            call = partial(contextvars.copy_context().run, function, *args)
            inbox = self._idle.pop() if self._idle else _start_thread()
            inbox.put(partial(self._work, inbox, call, answer))
            return await answer

    def close(self) -> None:
        """Idle threads end now, busy ones after their call."""
        self._closed = True
        while self._idle:
            self._idle.pop().put(None)

    def _work(self, inbox: SimpleQueue[Job | None], call: Callable[[], R], answer: asyncio.Future[R]) -> None:
        """In the thread: makes the call and carries the answer to the loop."""
        try:
            settle = partial(_succeed, answer, call())
        except BaseException as error:  # noqa: BLE001 - whatever it is, it travels to the caller
            settle = partial(_fail, answer, error)
        end_copy(self._born)
        try:
            answer.get_loop().call_soon_threadsafe(self._on_finished, inbox, settle)
        except RuntimeError:  # the loop was closed: nobody waits for this answer, nobody will call again
            inbox.put(None)

    def _on_finished(self, inbox: SimpleQueue[Job | None], settle: Job) -> None:
        if self._closed or len(self._idle) >= self._size:
            inbox.put(None)
        else:
            self._idle.append(inbox)
        self._threads.release()
        settle()


def _start_thread() -> SimpleQueue[Job | None]:
    """Starts a thread; it does what comes into this inbox, until that is None."""
    inbox: SimpleQueue[Job | None] = SimpleQueue()
    threading.Thread(target=_work_off, args=[inbox], name="gristmill-handler", daemon=True).start()
    return inbox


def _work_off(inbox: SimpleQueue[Job | None]) -> None:
    while job := inbox.get():
        job()
        del job  # an idle thread must not keep the arguments of its last call alive


def _succeed(answer: asyncio.Future[R], result: R) -> None:
    if not answer.done():
        answer.set_result(result)


def _fail(answer: asyncio.Future[Any], error: BaseException) -> None:
    if answer.done():
        return
    # SystemExit would end the worker, CancelledError its task; a future takes no StopIteration
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        answer.set_exception(error)
    else:
        told = Transient(f"{type(error).__name__}: {error}")
        told.__cause__ = error
        answer.set_exception(told)
