"""Work in child processes: whatever happens to one, its call gets one answer and no other call notices."""

import asyncio
import contextlib
import ctypes
import io
import operator
import os
import pickle
import random
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
import uvloop
from chores import (
    CACHE,
    MB,
    ForTheParentOnly,
    Unreadable,
    Unwritable,
    allocate,
    cores_of_threads,
    count_and_hang,
    count_slowly,
    crash_with_helper,
    divide,
    fail,
    hang_with_helper,
    note,
    remember,
    say_in_a_fork,
    sockets,
    start_thread,
    translate_lack_of_memory,
)

from gristmill.errors import Permanent, Transient
from gristmill.processes import child as inside
from gristmill.processes import cpu_placement
from gristmill.processes.pool import Crashed, OutOfMemory, ProcessPool, TimedOut

LONG = 30.0  # a bound that only a broken pool reaches
NATIVE = (re.match, "(a+)+$", "a" * 60 + "b")  # busy for ever, and no other thread of its process may run
PYTHON = (exec, "while True: pass")
ASLEEP = (time.sleep, 1000)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool() -> AsyncIterator[ProcessPool]:
    """One for all tests, of one child: starting it takes most of their time, and it must survive them all."""
    before, pool = children(), ProcessPool(1)
    yield pool
    await pool.close()
    await until(lambda: not children() - before)


async def at_any_pace(in_time: Callable[[float], Awaitable[None]]) -> None:
    """What only design makes true, whatever the limit: one success proves it, a busy machine gets more time."""
    for limit in (0.5, 1, 2, 4):
        with contextlib.suppress(TimedOut):
            return await in_time(limit)
    return await in_time(8)


def children() -> set[int]:
    """Those of ours that a pool started."""
    found: set[int] = set()
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):  # a zombie has no command either
            if "serve(" in " ".join(child.cmdline()):
                found.add(child.pid)
    return found


async def until(true: Callable[[], Any]) -> None:
    async with asyncio.timeout(LONG):
        while not true():  # noqa: ASYNC110 - other processes set no event
            await asyncio.sleep(0.01)


async def gone(pid: int) -> None:
    await until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


async def number_in(file: Path) -> int:
    await until(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())  # noqa: ASYNC240 - a few bytes


# --- answers


async def test_a_child_stays_warm_between_calls(pool: ProcessPool) -> None:
    assert await pool.run(remember, "a", timeout=LONG) == ["a"]
    assert await pool.run(remember, "b", timeout=LONG) == ["a", "b"]
    assert CACHE == []


async def test_fifty_megabytes_travel_there_and_back_while_the_loop_goes_on(pool: ProcessPool) -> None:
    data = os.urandom(MB) * 50
    call = asyncio.create_task(pool.run(operator.concat, data, b"!", timeout=LONG))
    turns = 0
    while not call.done():
        await asyncio.sleep(0)
        turns += 1
    assert await call == data + b"!"
    assert turns > 10


async def test_the_time_of_a_call_in_steps_begins_anew_with_each_word(pool: ProcessPool) -> None:
    """It takes one and a half times its limit."""
    heard: list[int] = []

    async def in_time(limit: float) -> None:
        heard.clear()
        assert await pool.run(count_slowly, 6, limit / 4, timeout=limit, hear=heard.append, in_steps=True) == 6

    await at_any_pace(in_time)
    assert heard == [0, 1, 2, 3, 4, 5]
    with pytest.raises(TimedOut):
        await pool.run(count_slowly, 6, 0.2, timeout=0.5, hear=heard.append)


async def test_what_a_call_said_before_it_hung_is_heard_in_order(pool: ProcessPool) -> None:
    heard: list[int] = []
    call = asyncio.create_task(pool.run(count_and_hang, 500, timeout=LONG, hear=heard.append))
    await until(lambda: len(heard) == 500)
    assert heard == list(range(500))
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_what_is_said_within_a_moment_is_sent_together_by_who_says_something_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        monkeypatch.setattr(inside._Pipe, "stream", theirs)
        inside.tell(1)
        with pytest.raises(BlockingIOError):
            ours.recv(1)
        monkeypatch.setattr(inside._Pipe, "since", time.monotonic() - 2 * inside.TOGETHER)
        inside.tell(2)
        received = io.BytesIO(ours.recv(1_000))
        for word in (1, 2):
            assert inside.REPLY.unpack(received.read(inside.REPLY.size))[0] == inside.NEWS
            assert pickle.load(received) == word
        assert not received.read()


async def test_a_process_that_a_call_forked_says_nothing_in_its_place(pool: ProcessPool) -> None:
    heard: list[str] = []
    await pool.run(say_in_a_fork, 3, timeout=LONG, hear=heard.append)
    assert heard == ["ours"]


async def test_an_error_comes_back_as_itself_with_its_story(pool: ProcessPool) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        await pool.run(divide, 1, 0, timeout=LONG)
    assert "in divide" in caught.value.__notes__[0]
    with pytest.raises(Permanent, match="no such page"):
        await pool.run(fail, Permanent, "no such page", timeout=LONG)


@pytest.mark.parametrize(
    ("error", "args", "text"),
    [
        (Unreadable, (3, "torn"), "Unreadable: page 3: torn"),
        (Unwritable, ("wet",), "Unwritable: wet"),
        (SystemExit, (2,), "SystemExit: 2"),
        (KeyboardInterrupt, (), "KeyboardInterrupt: "),
    ],
)
async def test_an_error_that_cannot_travel_sends_its_text(
    pool: ProcessPool, error: type[Exception], args: tuple[Any, ...], text: str
) -> None:
    with pytest.raises(Transient) as caught:
        await pool.run(fail, error, *args, timeout=LONG)
    assert str(caught.value) == text
    assert "in fail" in caught.value.__notes__[0]


async def test_what_cannot_travel_is_refused_for_good_and_costs_no_child(pool: ProcessPool) -> None:
    child = await pool.run(os.getpid, timeout=LONG)
    with pytest.raises(Permanent, match="cannot be sent to a process"):
        await pool.run(lambda: 1, timeout=LONG)
    with pytest.raises(Permanent, match="cannot be sent to a process"):
        await pool.run(len, threading.Lock(), timeout=LONG)
    with pytest.raises(Permanent, match="its result cannot be sent between processes"):
        await pool.run(threading.Lock, timeout=LONG)
    with pytest.raises(Permanent, match="cannot be read in a process: ImportError: no module named elsewhere"):
        await pool.run(len, ForTheParentOnly(), timeout=LONG)
    assert await pool.run(os.getpid, timeout=LONG) == child


# --- deaths


async def test_a_crash_costs_one_call(pool: ProcessPool) -> None:
    with pytest.raises(Crashed, match=r"^its process was killed by SIGSEGV$"):
        await pool.run(ctypes.string_at, 0, timeout=LONG)
    with pytest.raises(Crashed, match=r"^its process ended with exit code 3$"):
        await pool.run(os._exit, 3, timeout=LONG)
    assert await pool.run(operator.add, 1, 2, timeout=LONG) == 3


async def test_a_child_that_is_killed_from_outside_answers_its_call(pool: ProcessPool, tmp_path: Path) -> None:
    child = await pool.run(os.getpid, timeout=LONG)
    call = asyncio.create_task(pool.run(hang_with_helper, f"{tmp_path}/begun", timeout=LONG))
    await number_in(tmp_path / "begun")
    os.kill(child, signal.SIGKILL)
    with pytest.raises(Crashed, match="killed by SIGKILL"):
        await call


async def test_a_child_that_dies_while_idle_is_replaced_silently(pool: ProcessPool) -> None:
    first = await pool.run(os.getpid, timeout=LONG)
    os.kill(first, signal.SIGTERM)  # reset to its default, it ends the child
    second = await pool.run(os.getpid, timeout=LONG)  # dying, dead or gone: all the same
    os.kill(second, signal.SIGKILL)
    await gone(second)
    third = await pool.run(os.getpid, timeout=LONG)
    assert len({first, second, third}) == 3


async def test_a_call_that_its_child_never_read_is_given_to_another(pool: ProcessPool) -> None:
    child = await pool.run(os.getpid, timeout=LONG)
    os.kill(child, signal.SIGSTOP)
    call = asyncio.create_task(pool.run(os.getpid, timeout=LONG))
    await asyncio.sleep(0)
    os.kill(child, signal.SIGKILL)
    assert await call != child


@pytest.mark.parametrize("call", [PYTHON, NATIVE, ASLEEP], ids=["python", "native", "asleep"])
async def test_a_call_that_hangs_is_killed_after_its_time(pool: ProcessPool, call: Any) -> None:
    child = await pool.run(os.getpid, timeout=LONG)
    with pytest.raises(TimedOut, match=r"^it was not done after 0.1 s and its process was killed$"):
        await pool.run(*call, timeout=0.1)
    await gone(child)


async def test_helpers_go_with_the_child_that_started_them(pool: ProcessPool, tmp_path: Path) -> None:
    call = asyncio.create_task(pool.run(hang_with_helper, f"{tmp_path}/hang", timeout=LONG))
    helper = await number_in(tmp_path / "hang")
    call.cancel()
    await gone(helper)
    with pytest.raises(Crashed, match="exit code 7"):
        await pool.run(crash_with_helper, f"{tmp_path}/crash", timeout=LONG)
    await gone(await number_in(tmp_path / "crash"))


# --- memory


async def test_a_memory_bomb_costs_one_call_and_what_fits_is_let_through(pool: ProcessPool) -> None:
    child = await pool.run(os.getpid, timeout=LONG)
    assert await pool.run(allocate, 16 * MB, timeout=LONG, memory=64 * MB) == 16 * MB
    assert await pool.run(allocate, 256 * MB, timeout=LONG) == 256 * MB  # the limit was of that call only
    assert await pool.run(os.getpid, timeout=LONG) == child
    with pytest.raises(OutOfMemory, match=r"^it needed more than the 64 MiB of memory it may use"):
        await pool.run(allocate, 128 * MB, timeout=LONG, memory=64 * MB)
    assert await pool.run(os.getpid, timeout=LONG) != child
    with pytest.raises(OutOfMemory):
        await pool.run(translate_lack_of_memory, timeout=LONG, memory=64 * MB)


async def test_native_code_that_aborts_under_a_limit_is_suspected_of_its_memory(pool: ProcessPool) -> None:
    with pytest.raises(Crashed, match="killed by SIGABRT, perhaps for lack of memory: it may use 64 MiB"):
        await pool.run(os.abort, timeout=LONG, memory=64 * MB)


# --- turns


async def test_calls_are_served_in_order(pool: ProcessPool, tmp_path: Path) -> None:
    words = [str(number) for number in range(50)]
    await asyncio.gather(*(pool.run(note, f"{tmp_path}/notes", word, timeout=LONG) for word in words))
    assert (tmp_path / "notes").read_text().split() == words


async def test_waiting_for_a_child_does_not_count(pool: ProcessPool) -> None:
    async def in_time(limit: float) -> None:
        await pool.run(os.getpid, timeout=LONG)
        first = asyncio.create_task(pool.run(time.sleep, limit * 1.5, timeout=LONG))
        await asyncio.sleep(0)
        await pool.run(os.getpid, timeout=limit)
        assert first.done()
        await first

    await at_any_pace(in_time)


async def test_a_cancelled_call_frees_its_place(pool: ProcessPool) -> None:
    child = await pool.run(os.getpid, timeout=LONG)
    call = asyncio.create_task(pool.run(*PYTHON, timeout=LONG))
    waiting = asyncio.create_task(pool.run(os.getpid, timeout=LONG))
    gives_up = asyncio.create_task(pool.run(os.getpid, timeout=LONG))
    await asyncio.sleep(0)
    gives_up.cancel()
    call.cancel()
    await gone(child)
    second = await waiting
    assert second != child
    os.kill(second, signal.SIGKILL)
    await gone(second)
    starts = asyncio.create_task(pool.run(os.getpid, timeout=LONG))
    await asyncio.sleep(0)
    starts.cancel()  # while its child starts
    assert await pool.run(operator.add, 1, 2, timeout=LONG) == 3


async def test_a_child_is_replaced_after_so_many_calls() -> None:
    pool = ProcessPool(1, recycle_after=2)
    pids = [await pool.run(os.getpid, timeout=LONG) for _ in range(3)]
    assert pids[0] == pids[1] != pids[2]
    await gone(pids[0])
    await pool.close()


async def test_a_nice_child_steps_back_for_whoever_else_needs_the_processor() -> None:
    pool = ProcessPool(1, nice=3)
    assert await pool.run(os.nice, 0, timeout=LONG) == os.nice(0) + 3
    await pool.close()


async def test_on_a_quiet_machine_a_call_apart_leaves_us_our_core(
    pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = os.sched_getaffinity(0)
    monkeypatch.setattr(cpu_placement, "is_quiet", lambda: True)
    for core in ours:
        monkeypatch.setattr(cpu_placement, "our_core", lambda core=core: core)
        assert await pool.run(os.sched_getaffinity, 0, timeout=LONG, apart=True) == (ours - {core} or ours)
    assert await pool.run(os.sched_getaffinity, 0, timeout=LONG) == ours


async def test_on_a_busy_machine_every_call_may_run_anywhere(
    pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_placement, "is_quiet", lambda: False)
    assert await pool.run(os.sched_getaffinity, 0, timeout=LONG, apart=True) == os.sched_getaffinity(0)


async def test_a_thread_that_was_started_apart_may_run_anywhere_afterwards(
    pool: ProcessPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_placement, "is_quiet", lambda: True)
    await pool.run(start_thread, timeout=LONG, apart=True)
    assert await pool.run(cores_of_threads, timeout=LONG) == {frozenset(os.sched_getaffinity(0))}


async def test_a_machine_is_quiet_when_nobody_else_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    load = tmp_path / "loadavg"
    monkeypatch.setattr(cpu_placement, "LOAD", load)
    for text, quiet in (("0.1 0.2 0.3 1/99 7", True), ("0.1 0.2 0.3 2/99 7", False), ("", False), ("no load", False)):
        load.write_text(text)
        assert cpu_placement.is_quiet() is quiet
    monkeypatch.setattr(cpu_placement, "LOAD", tmp_path / "of another system")
    assert cpu_placement.is_quiet() is False


async def test_among_many_calls_and_crashes_each_gets_its_own_answer() -> None:
    before, pool = children(), ProcessPool(3)
    lots = [(operator.add, number, 1) for number in range(200)]
    for number in random.sample(range(200), 20):
        lots[number] = (operator.truediv, number, 0)
    for number in random.sample(range(200), 2):
        lots[number] = (os._exit, number)
    for number in random.sample(range(200), 2):
        lots[number] = (signal.raise_signal, signal.SIGKILL)
    answers = await asyncio.gather(*(pool.run(*lot, timeout=LONG) for lot in lots), return_exceptions=True)
    for (function, *args), answer in zip(lots, answers, strict=True):
        if function is operator.add:
            assert answer == args[0] + 1
        elif function is operator.truediv:
            assert isinstance(answer, ZeroDivisionError)
        else:
            assert isinstance(answer, Crashed)
            assert str(args[0]) in str(answer) or "SIGKILL" in str(answer)
    assert len(children() - before) <= 3
    await pool.close()
    await until(lambda: not children() - before)


async def test_close_ends_hanging_children_and_answers_every_call() -> None:
    before, pool = children(), ProcessPool(2)
    assert not children() - before  # they are started when needed
    await pool.run(os.getpid, timeout=LONG)
    calls = [asyncio.create_task(pool.run(*PYTHON, timeout=LONG)) for _ in range(4)]
    await asyncio.sleep(0)  # one runs, one starts its child, two wait
    assert len(children() - before) == 2
    await pool.close()
    for answer in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(answer, Transient)
        assert str(answer) == "the process pool was closed"
    await until(lambda: not children() - before)
    with pytest.raises(Transient, match="was closed"):
        await pool.run(os.getpid, timeout=LONG)
    await pool.close()


# --- parents and children


async def test_a_child_inherits_none_of_our_sockets(pool: ProcessPool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.set_inheritable(True)
        ours = os.readlink(f"/proc/self/fd/{server.fileno()}")
        assert ours not in await pool.run(sockets, timeout=LONG)


async def test_a_child_leaves_ctrl_c_to_its_parent(pool: ProcessPool) -> None:
    await pool.run(signal.raise_signal, signal.SIGINT, timeout=LONG)
    assert await pool.run(signal.getsignal, signal.SIGTERM, timeout=LONG) == signal.SIG_DFL


PARENT = """
import asyncio, os, re, sys, time
from pathlib import Path
from gristmill.processes.pool import ProcessPool

def busy(folder, how):
    Path(folder, str(os.getpid())).touch()
    if how == "native":
        re.match(r"(a+)+$", "a" * 60 + "b")
    time.sleep(1000)

async def main():
    pool = ProcessPool(3)
    await asyncio.gather(*(pool.run(busy, sys.argv[1], how, timeout=1000) for how in ("native", "asleep")))

if __name__ == "__main__":
    asyncio.run(main())
"""


async def test_busy_children_die_with_their_parent(tmp_path: Path) -> None:
    script, pids = tmp_path / "parent.py", tmp_path / "pids"
    pids.mkdir()
    script.write_text(PARENT)
    parent = await asyncio.create_subprocess_exec(sys.executable, script, pids)
    await until(lambda: parent.returncode is not None or len(list(pids.iterdir())) == 2)
    parent.kill()
    await parent.wait()
    for child in pids.iterdir():
        await gone(int(child.name))


async def test_a_main_script_that_works_when_imported_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "unguarded.py"
    script.write_text(
        textwrap.dedent("""
            import asyncio
            from gristmill.processes.pool import ProcessPool

            def answer():
                return 42

            async def main():
                pool = ProcessPool(1)
                try:
                    print(await pool.run(answer, timeout=30))
                except Exception as error:
                    print(type(error).__name__, error)
                    raise
                finally:
                    await pool.close()

            asyncio.run(main())
        """)
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, script, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 1
    assert "put it under if __name__ == '__main__'" in out.decode()


async def test_the_same_holds_on_uvloop() -> None:
    async def calls() -> None:
        before, pool = children(), ProcessPool(1)
        data = bytes(20 * MB)
        assert await pool.run(operator.concat, data, b"!", timeout=LONG) == data + b"!"
        with pytest.raises(Crashed, match="SIGSEGV"):
            await pool.run(ctypes.string_at, 0, timeout=LONG)
        with pytest.raises(TimedOut):
            await pool.run(*NATIVE, timeout=0.1)
        assert await pool.run(operator.add, 1, 2, timeout=LONG) == 3
        await pool.close()
        await until(lambda: not children() - before)

    await asyncio.to_thread(uvloop.run, calls())
