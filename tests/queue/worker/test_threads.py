"""Blocking work in daemon threads: what hangs is left behind, and keeps nobody waiting."""

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import pytest

from gristmill.errors import Transient
from gristmill.queue.worker.threads import DaemonThreads

LONG = 30.0  # a bound that only broken threads reach
WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="nobody")


@pytest.fixture
async def gate() -> AsyncIterator[threading.Event]:
    """Where handlers hang until the test opens it, or ends."""
    gate = threading.Event()
    yield gate
    gate.set()


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(LONG):
        while not true():  # noqa: ASYNC110 - threads set no asyncio.Event
            await asyncio.sleep(0.005)


async def abandon(threads: DaemonThreads, gate: threading.Event) -> None:
    """Leaves one thread hanging."""
    started = threading.Event()

    def hang() -> None:
        started.set()
        gate.wait(LONG)

    call = asyncio.create_task(threads.run(hang))
    await until(started.is_set)
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call


async def test_a_function_runs_in_a_daemon_thread_that_is_used_again() -> None:
    threads = DaemonThreads(3)
    first = await threads.run(threading.current_thread)
    assert first is not threading.current_thread()
    assert first.daemon
    assert await threads.run(threading.current_thread) is first
    assert await threads.run(max, 3, 7) == 7
    threads.close()
    await until(lambda: not first.is_alive())


async def test_context_variables_come_along_and_do_not_come_back() -> None:
    def introduce() -> str:
        before = WHO.get()
        WHO.set("the thread")
        return before

    threads = DaemonThreads(1)
    WHO.set("the caller")
    assert await threads.run(introduce) == "the caller"
    assert WHO.get() == "the caller"
    threads.close()


async def test_errors_reach_the_caller_and_those_that_would_end_the_worker_do_not() -> None:
    def fail(error: BaseException) -> None:
        raise error

    threads = DaemonThreads(1)
    with pytest.raises(ZeroDivisionError):
        await threads.run(fail, ZeroDivisionError())
    for error in (SystemExit(2), KeyboardInterrupt(), asyncio.CancelledError(), StopIteration()):
        with pytest.raises(Transient, match=type(error).__name__):
            await threads.run(fail, error)
    threads.close()


async def test_no_more_than_the_size_run_at_once_and_in_order() -> None:
    running, most, order = 0, 0, list[int]()
    lock = threading.Lock()

    def work(number: int) -> None:
        nonlocal running, most
        with lock:
            running, order[len(order) :] = running + 1, [number]
            most = max(most, running)
        with lock:
            running -= 1

    threads = DaemonThreads(3)
    await asyncio.gather(*(threads.run(work, number) for number in range(100)))
    assert most <= 3
    assert sorted(order) == list(range(100))
    threads.close()

    one, order[:] = DaemonThreads(1), []
    await asyncio.gather(*(one.run(work, number) for number in range(100)))
    assert order == list(range(100))
    one.close()


async def test_a_caller_that_waits_may_give_up(gate: threading.Event) -> None:
    threads = DaemonThreads(1)
    busy = asyncio.create_task(threads.run(gate.wait, LONG))
    gives_up = asyncio.create_task(threads.run(max, 1, 2))
    patient = asyncio.create_task(threads.run(max, 3, 4))
    await asyncio.sleep(0)
    gives_up.cancel()
    gate.set()
    assert await patient == 4
    assert await busy
    threads.close()


async def test_an_abandoned_thread_no_longer_counts_until_too_many_hang(gate: threading.Event) -> None:
    threads = DaemonThreads(1)
    for _ in range(3):
        await abandon(threads, gate)
        assert await threads.run(max, 1, 2) == 2
    await abandon(threads, gate)
    waits = asyncio.create_task(threads.run(max, 3, 4))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waits.done()
    before = threading.active_count()
    gate.set()
    assert await waits == 4
    await until(lambda: threading.active_count() <= before - 3)  # one is kept, as the size says
    threads.close()


async def test_after_close_nothing_starts_and_what_runs_may_finish(gate: threading.Event) -> None:
    threads = DaemonThreads(1)
    busy = asyncio.create_task(threads.run(gate.wait, LONG))
    waits = asyncio.create_task(threads.run(max, 1, 2))
    await asyncio.sleep(0)
    threads.close()
    gate.set()
    assert await busy
    with pytest.raises(Transient, match="were closed"):
        await waits
    with pytest.raises(Transient, match="were closed"):
        await threads.run(max, 1, 2)


def test_a_thread_that_outlives_its_loop_ends_quietly() -> None:
    gate, threads = threading.Event(), list[threading.Thread]()

    def hang() -> None:
        threads.append(threading.current_thread())
        gate.wait(LONG)

    async def leave() -> None:
        call = asyncio.create_task(DaemonThreads(1).run(hang))
        await until(lambda: threads)
        call.cancel()

    asyncio.run(leave())
    gate.set()
    threads[0].join(LONG)
    assert not threads[0].is_alive()


def test_a_handler_that_hangs_does_not_keep_the_interpreter() -> None:
    program = """
import asyncio, threading
from gristmill.queue.worker.threads import DaemonThreads

async def main():
    try:
        async with asyncio.timeout(0.1):
            await DaemonThreads(1).run(threading.Event().wait)
    except TimeoutError:
        print("left behind")

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=LONG)
    assert (done.returncode, done.stdout, done.stderr) == (0, "left behind\n", "")
