"""Runs dangerous or CPU-bound work in child processes: a crash, a hang or a memory bomb costs one call.

One duplex pipe per child and nothing shared among children. The pools of concurrent.futures, multiprocessing
and pebble share a locked queue: a child that is killed while it holds that lock stops all its siblings, and
concurrent.futures gives up the whole pool when one child dies. Here a SIGKILL is an everyday tool.
"""

import asyncio
import errno
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import spawn
from typing import Any, TypeVar, cast

from gristmill.doors import keep_doors_closed
from gristmill.errors import Permanent, Transient
from gristmill.processes.child import CALL, NEWS, REPLY, CallReader, OutOfMemory, serve
from gristmill.processes.cpu_placement import place_process
from gristmill.settings import environment

R = TypeVar("R")

START = 60.0  # seconds until a child must be ready: imports are slow on a busy machine
SMALL = 65_536  # bytes: a smaller call is joined and written at once
FAREWELL = 2.0  # seconds an idle child may take to end by itself
# Pages of 2 MB where the system has them: a model reads all its weights for each answer, and with small pages a tenth
# of that time goes into looking up addresses.
LARGE = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
MAIN = ("init_main_from_name", "init_main_from_path", "sys_argv")  # how to import our __main__ elsewhere


class TimedOut(Transient):
    """The call took too long; its process was killed."""


class Crashed(Transient):
    """The process of the call died."""


class _NeverBegan(Crashed):
    """The process died before it had read the call."""


class ProcessPool:
    """Calls functions in at most `size` child processes; each call gets exactly one answer.

    A child stays warm between calls (imports, module-level caches) and is replaced after `recycle_after` of
    them, so that leaks have an end. The processor goes to others first, as far as they are `nice`. A pool belongs to
    one event loop.
    """

    def __init__(self, size: int, *, recycle_after: int = 200, nice: int = 0) -> None:
        self.size = size
        self._nice = nice
        self._recycle_after = recycle_after
        self._slots = asyncio.Semaphore(size)  # fair: who waits longest is served first
        self._children: set[_Child] = set()
        self._idle: list[_Child] = []
        self._closed = False

    async def run(
        self,
        function: Callable[..., R],
        *args: Any,
        timeout: float,
        memory: int | None = None,
        context: Any = None,
        hear: Callable[[Any], None] = lambda _: None,
        in_steps: bool = False,
        apart: bool = False,
    ) -> R:
        """`timeout` in seconds, waiting for a child excluded; `memory` in bytes beyond what the child had.

        The function finds `context` with `call_context()`; `hear` gets what it says on its way with `tell`. The time of
        a call `in_steps` begins anew with each word. A call that is made `apart` runs on another core than ours if the
        machine is quiet: for callers that have more to do meanwhile and are in a hurry.
        """
        terms = _Terms(timeout, memory, hear, in_steps, apart)
        call = _write_call(function, args, context)
        try:
            return cast(R, await self._run(call, terms))
        except _NeverBegan:
            # its child died while idle: try once more, but not for ever, as perhaps no child can read this call
            return cast(R, await self._run(call, terms))

    async def close(self) -> None:
        """Ends all children, hanging ones too; calls that run or wait end with Transient."""
        self._closed = True
        for child in self._children:
            if child in self._idle:
                child.retire()
            else:
                child.fail(Transient("the process pool was closed"))
                child.kill()
        self._idle.clear()
        if self._children:
            await asyncio.wait([child.gone for child in self._children], timeout=2 * FAREWELL)

    async def _run(self, call: list[bytes], terms: "_Terms") -> Any:
        await self._slots.acquire()
        child = await self._free_child()
        try:
            return _read_reply(await child.ask(call, terms), terms.memory)
        except OutOfMemory:
            child.kill()  # a library in it may be in a broken state now
            raise
        finally:
            self._give_back(child)

    async def _free_child(self) -> "_Child":
        """A living child for the slot that the caller holds."""
        if self._closed:
            self._slots.release()
            raise Transient("the process pool was closed")
        while self._idle:
            child = self._idle.pop()  # the one used last has the warmest caches
            if child.usable:
                return child
        return await self._start()

    async def _start(self) -> "_Child":
        try:
            child = _Child(self._nice)
        except BaseException as error:
            self._slots.release()
            if isinstance(error, OSError):
                raise Transient(f"no process could be started: {error}") from error
            raise
        self._children.add(child)
        child.gone.add_done_callback(lambda _: self._forget(child))
        try:
            await child.connect()
        except BaseException:
            child.kill()
            self._give_back(child)
            raise
        return child

    def _give_back(self, child: "_Child") -> None:
        if child.usable and child.calls < self._recycle_after and not self._closed:
            self._idle.append(child)
            self._slots.release()
        else:  # its slot is free when the process has ended, so that there are never more than `size`
            child.retire()
            child.gone.add_done_callback(lambda _: self._slots.release())

    def _forget(self, child: "_Child") -> None:
        self._children.discard(child)
        if child in self._idle:
            self._idle.remove(child)


@dataclass(frozen=True, slots=True)
class _Terms:
    """The terms of one call: its limits, and who hears what it says."""

    timeout: float
    memory: int | None = None
    hear: Callable[[Any], None] = lambda _: None
    in_steps: bool = False
    apart: bool = False


class _Child(asyncio.Protocol):
    """One process and our end of its pipe."""

    def __init__(self, nice: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._pipe, self._process = self._begin(nice)
        # The end of the pipe does not prove that the child died, as a forked helper may hold it open; the pidfd does.
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._pidfd, self._on_exit)
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._reply: asyncio.Future[memoryview] | None = None
        self._failure: Exception | None = None
        self._unread = False
        self._code: int | None = None
        self._terms = _Terms(START)
        self._timer: asyncio.TimerHandle | None = None
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self.usable = True
        self.calls = -1  # the greeting does not count
        self._confined = False

    def _begin(self, nice: int) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        ours, theirs = socket.socketpair()
        try:
            return ours, _start_process(theirs, nice)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()

    async def connect(self) -> None:
        """Returns when the child is ready for calls."""
        await self._loop.create_unix_connection(lambda: self, sock=self._pipe)
        try:
            await self.ask([pickle.dumps(_main_module())], _Terms(START))
        except TimedOut as error:
            raise Crashed(f"its process was not ready after {START:g} s") from error

    async def ask(self, call: list[bytes], terms: _Terms) -> memoryview:
        """Its reply; if the caller is cancelled meanwhile, the child is killed, as its next reply would be this one."""
        if self._failure is not None or self._transport is None:
            raise self._failure or Crashed("its process has no pipe")
        self.calls += 1
        self._terms = terms
        self._reply = self._loop.create_future()
        self._wind_up()
        if terms.apart or self._confined:
            self._confined = place_process(self._process.pid, apart=terms.apart, confined=self._confined)
        length = sum(map(len, call))
        parts = [CALL.pack(length, terms.memory or 0), *call]
        # in one write, or the child wakes up for each part; large calls are not joined, as that would copy them
        for part in parts if length > SMALL else [b"".join(parts)]:
            self._transport.write(part)
        try:
            return await self._reply
        except BaseException:
            self.kill()
            raise
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _wind_up(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(self._terms.timeout, self._too_late)

    def fail(self, error: Exception) -> None:
        """End the call that waits, and every later one, with this error."""
        self.usable = False
        self._failure = self._failure or error
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(self._failure)

    def retire(self) -> None:
        """Lets it end by itself, and makes it end when it does not."""
        if self.usable and self._transport is not None:
            self.usable = False
            self._transport.write_eof()
            self._loop.call_later(FAREWELL, self.kill)

    def kill(self) -> None:
        """Kill it with the helpers that it started: its process group, whose id nobody else gets until we reap it."""
        self.usable = False
        if self._code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(ProcessLookupError):  # it may have left its group
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= REPLY.size:
            kind, length = REPLY.unpack_from(self._received)
            end = REPLY.size + length
            if len(self._received) < end:
                return
            received, self._received = self._received, self._received[end:]
            self._take(kind, memoryview(received)[REPLY.size : end])

    def _take(self, kind: bytes, body: memoryview) -> None:
        if self._reply is None or self._reply.done():
            return
        if kind == NEWS:
            if self._terms.in_steps:
                self._wind_up()
            self._terms.hear(pickle.loads(body))
        else:
            self._reply.set_result(body)

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        self._transport = None
        # If the other end closes with bytes unread, the stream is reset; if it had read them all, the stream just ends.
        self._unread = self._unread or isinstance(exc, ConnectionError)
        if self._code is not None:
            self._finish(self._code)
        else:  # it is ending by itself, which may take a moment; or the function closed the pipe
            self._loop.call_later(FAREWELL, self.kill)

    def _too_late(self) -> None:
        self.fail(TimedOut(f"it was not done after {self._terms.timeout:g} s and its process was killed"))
        self.kill()

    def _on_exit(self) -> None:
        self.kill()  # the helpers it left behind
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._code = self._process.wait()
        if self._transport is not None:
            with suppress(OSError):
                self._unread = self._pipe.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNRESET
            self._transport.abort()  # calls connection_lost, which may know more
        else:
            self._pipe.close()
            self._finish(self._code)

    def _finish(self, code: int) -> None:
        self.gone.set_result(None)
        error = _NeverBegan if self._unread else Crashed
        self.fail(error(_describe_death(code, self._terms.memory)))


def _start_process(pipe: socket.socket, nice: int) -> subprocess.Popen[bytes]:
    """A fresh interpreter that inherits this pipe and the standard streams, no other file or socket of ours.

    Called in the thread of the loop: PR_SET_PDEATHSIG fires when the *thread* that started the child ends.
    """
    if CallReader.importing:
        raise Permanent("the main script starts its work when it is imported: put it under if __name__ == '__main__'")
    # closed doors: importing all of Gristmill that a parent has takes ten times as long
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        f"from {keep_doors_closed.__module__} import keep_doors_closed; keep_doors_closed(); "
        f"from {serve.__module__} import serve; serve({pipe.fileno()}, {os.getpid()}, {nice})"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        pass_fds=(pipe.fileno(),),
        process_group=0,
        env=LARGE | environment(),
    )


def _main_module() -> dict[str, Any]:
    known = spawn.get_preparation_data("child")
    return {key: known[key] for key in MAIN if key in known}


class _Parts:
    """A file for the pickler that keeps the parts it is given."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, part: Any, /) -> None:
        # only bytes cannot change while they wait to be sent; others are copied
        self.written.append(part if isinstance(part, bytes) else bytes(part))


def _write_call(function: Callable[..., Any], args: tuple[Any, ...], context: Any) -> list[bytes]:
    """The call in parts: the pickler hands large bytes on as they are, where `dumps` would copy them."""
    parts = _Parts()
    try:
        pickle.Pickler(parts, pickle.HIGHEST_PROTOCOL).dump((function, args, context))
        return parts.written
    except Exception as error:
        raise Permanent(f"its function or arguments cannot be sent to a process: {error}") from error


def _read_reply(reply: memoryview, memory: int | None) -> Any:
    try:
        result, error, story = pickle.loads(reply)
    except Exception as unreadable:
        raise Permanent(f"its result cannot be read back from its process: {unreadable}") from unreadable
    if error is None:
        return result
    if isinstance(error, OutOfMemory) and memory:
        error = OutOfMemory(f"it needed more than the {_megabytes(memory)} of memory it may use")
    error.add_note(f"in its process:\n{story}")
    raise error


def _describe_death(code: int, memory: int | None) -> str:
    if code >= 0:
        return f"its process ended with exit code {code}"
    number = -code
    named = number in set(signal.Signals)
    sentence = f"its process was killed by {signal.Signals(number).name if named else f'signal {number}'}"
    if number == signal.SIGKILL:
        return f"{sentence}, perhaps by the system for lack of memory"
    if memory:  # native code aborts without memory, though not only then
        return f"{sentence}, perhaps for lack of memory: it may use {_megabytes(memory)}"
    return sentence


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.4g} MiB"
