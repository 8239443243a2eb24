"""Runs dangerous or CPU-bound work in child processes: a crash, a hang or a memory bomb costs one call.

One duplex pipe per child and nothing shared among children. The pools of concurrent.futures, multiprocessing
and pebble share a locked queue: a child that is killed while it holds that lock stops all its siblings, and
concurrent.futures gives up the whole pool when one child dies. Here a SIGKILL is an everyday tool.

The lower half of this file is what a child does; it runs nothing of the upper half.
"""

import asyncio
import ctypes
import errno
import os
import pickle
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from io import BytesIO
from multiprocessing import spawn
from pathlib import Path
from typing import Any, ClassVar, TypeVar, cast

from gristmill.errors import Permanent, Transient

R = TypeVar("R")

START = 60.0  # seconds a child may take until it is ready: imports on a busy machine
FAREWELL = 2.0  # seconds an idle child may take to end by itself
CALL = struct.Struct("!QQ")  # length, and bytes of memory it may use (0: any)
REPLY = struct.Struct("!Q")  # length
MAIN = ("init_main_from_name", "init_main_from_path", "sys_argv")  # how to import our __main__ elsewhere


class TimedOut(Transient):
    """The call took too long; its process was killed."""


class Crashed(Transient):
    """The process of the call died."""


class _NeverBegan(Crashed):
    """The process died before it had read the call."""


class OutOfMemory(Transient):
    """The call needed more memory than it may use."""


class ProcessPool:
    """Calls functions in at most `size` child processes; each call gets exactly one answer.

    A child stays warm between calls (imports, module-level caches) and is replaced after `recycle_after` of
    them, so that leaks have an end. A pool belongs to one event loop.
    """

    def __init__(self, size: int, *, recycle_after: int = 200) -> None:
        self._recycle_after = recycle_after
        self._slots = asyncio.Semaphore(size)  # fair: who waits longest is served first
        self._children: set[_Child] = set()
        self._idle: list[_Child] = []
        self._closed = False

    async def run(self, function: Callable[..., R], *args: Any, timeout: float, memory: int | None = None) -> R:
        """`timeout` in seconds, waiting for a child excluded; `memory` in bytes beyond what the child had."""
        call = _written(function, args)
        try:
            return cast(R, await self._run(call, timeout, memory))
        except _NeverBegan:  # its child died while idle; once, lest a call that no child can read goes on
            return cast(R, await self._run(call, timeout, memory))

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

    async def _run(self, call: list[bytes], timeout: float, memory: int | None) -> Any:
        await self._slots.acquire()
        child = await self._free_child()
        try:
            return _answer(await child.ask(call, timeout, memory), memory)
        except OutOfMemory:
            child.kill()  # nobody knows which of its libraries took it badly
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
            child = _Child()
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
        else:  # its place is free when it is gone, and not before: never more than `size` of them
            child.retire()
            child.gone.add_done_callback(lambda _: self._slots.release())

    def _forget(self, child: "_Child") -> None:
        self._children.discard(child)
        if child in self._idle:
            self._idle.remove(child)


class _Child(asyncio.Protocol):
    """One process and our end of its pipe."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pipe, theirs = socket.socketpair()
        try:
            self._process = _started(theirs)
        except BaseException:
            self._pipe.close()
            raise
        finally:
            theirs.close()
        # The pipe's end does not prove a death (a forked helper may hold it open), this does.
        self._pidfd = os.pidfd_open(self._process.pid)
        self._loop.add_reader(self._pidfd, self._ended)
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._reply: asyncio.Future[memoryview] | None = None
        self._failure: Exception | None = None
        self._unread = False
        self._code: int | None = None
        self._memory: int | None = None
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self.usable = True
        self.calls = -1  # the greeting is none

    async def connect(self) -> None:
        """Returns when the child is ready for calls."""
        await self._loop.create_unix_connection(lambda: self, sock=self._pipe)
        try:
            await self.ask([pickle.dumps(_main_module())], START, None)
        except TimedOut as error:
            raise Crashed(f"its process was not ready after {START:g} s") from error

    async def ask(self, call: list[bytes], timeout: float, memory: int | None) -> memoryview:
        """Its reply; whoever does not wait for it leaves a child that is of no use to others."""
        if self._failure is not None or self._transport is None:
            raise self._failure or Crashed("its process has no pipe")
        self.calls += 1
        self._memory = memory
        self._reply = self._loop.create_future()
        timer = self._loop.call_later(timeout, self._too_late, timeout)
        self._transport.write(CALL.pack(sum(map(len, call)), memory or 0))
        for part in call:  # one by one: joining them would copy tens of megabytes
            self._transport.write(part)
        try:
            return await self._reply
        except BaseException:
            self.kill()
            raise
        finally:
            timer.cancel()

    def fail(self, error: Exception) -> None:
        """Answers the call that waits, or the one that comes too late to hear."""
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
        """Kills it and the helpers it started: its process group, whose id is taken until we reap it."""
        self.usable = False
        if self._code is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            with suppress(ProcessLookupError):  # it may have left its group
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        if len(received) >= REPLY.size:
            (length,) = REPLY.unpack_from(received)
            if len(received) == REPLY.size + length:
                self._received = bytearray()
                if self._reply is not None and not self._reply.done():
                    self._reply.set_result(memoryview(received)[REPLY.size :])

    def connection_lost(self, exc: Exception | None) -> None:
        self.usable = False
        self._transport = None
        # A stream whose other end closes with something unread is reset; one that was read up just ends.
        self._unread = self._unread or isinstance(exc, ConnectionError)
        if self._code is not None:
            self._buried(self._code)
        else:  # it is dying, and may do so in its own way; or the function closed the pipe
            self._loop.call_later(FAREWELL, self.kill)

    def _too_late(self, timeout: float) -> None:
        self.fail(TimedOut(f"it was not done after {timeout:g} s and its process was killed"))
        self.kill()

    def _ended(self) -> None:
        self.kill()  # the helpers it left behind
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._code = self._process.wait()
        if self._transport is not None:
            with suppress(OSError):
                self._unread = self._pipe.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNRESET
            self._transport.abort()  # on to connection_lost, which may know more
        else:
            self._pipe.close()
            self._buried(self._code)

    def _buried(self, code: int) -> None:
        self.gone.set_result(None)
        error = _NeverBegan if self._unread else Crashed
        self.fail(error(_how_it_died(code, self._memory)))


def _started(pipe: socket.socket) -> subprocess.Popen[bytes]:
    """A fresh interpreter that inherits this pipe and the standard streams, no other file or socket of ours.

    Called in the thread of the loop: PR_SET_PDEATHSIG fires when the *thread* that started the child ends.
    """
    if _Reader.importing:
        raise Permanent("the main script starts its work when it is imported: put it under if __name__ == '__main__'")
    # By its file: importing our whole room first takes six times as long, and a call imports what it needs.
    program = (
        f"import sys, importlib.util as u; sys.path[:] = {sys.path!r}; "
        f"s = u.spec_from_file_location({__name__!r}, {__file__!r}); "
        f"m = sys.modules[s.name] = u.module_from_spec(s); s.loader.exec_module(m); "
        f"m.serve({pipe.fileno()}, {os.getpid()})"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        pass_fds=(pipe.fileno(),),
        process_group=0,
    )


def _main_module() -> dict[str, Any]:
    known = spawn.get_preparation_data("child")
    return {key: known[key] for key in MAIN if key in known}


class _Parts:
    """What a pickler takes for a file."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, part: Any, /) -> None:
        # what may change while it waits to be sent is copied
        self.written.append(part if isinstance(part, bytes) else bytes(part))


def _written(function: Callable[..., Any], args: tuple[Any, ...]) -> list[bytes]:
    """The call in parts: the pickler hands large bytes on as they are, where `dumps` would copy them."""
    parts = _Parts()
    try:
        pickle.Pickler(parts, pickle.HIGHEST_PROTOCOL).dump((function, args))
        return parts.written
    except Exception as error:
        raise Permanent(f"its function or arguments cannot be sent to a process: {error}") from error


def _answer(reply: memoryview, memory: int | None) -> Any:
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


def _how_it_died(code: int, memory: int | None) -> str:
    if code >= 0:
        return f"its process ended with exit code {code}"
    number = -code
    named = number in set(signal.Signals)
    sentence = f"its process was killed by {signal.Signals(number).name if named else f'signal {number}'}"
    if number == signal.SIGKILL:
        return f"{sentence}, perhaps by the system for lack of memory"
    if memory:  # native code aborts when it gets no memory, and for other reasons
        return f"{sentence}, perhaps for lack of memory: it may use {_megabytes(memory)}"
    return sentence


def _megabytes(size: int) -> str:
    return f"{size / 2**20:.4g} MiB"


# --- in the child ---------------------------------------------------------------------------------


def serve(pipe: int, parent: int) -> None:
    """What a child does until its pipe ends."""
    _settle_in(parent)
    os.set_inheritable(pipe, False)
    with socket.socket(fileno=pipe) as stream, stream.makefile("rb") as calls:
        threading.Thread(target=_die_with_parent, args=[pipe], daemon=True).start()
        length, _ = CALL.unpack(calls.read(CALL.size))
        _Reader.main = pickle.loads(calls.read(length))
        _send(stream, _success(None))
        while header := calls.read(CALL.size):
            length, memory = CALL.unpack(header)
            _send(stream, _reply_to(calls.read(length), memory))


def _settle_in(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it died before we could ask to die with it
    # A crash is expected here: no gigabytes of core with somebody's documents in them.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with suppress(OSError):  # when the machine runs out of memory, rather us than the worker or its database
        Path("/proc/self/oom_score_adj").write_text("500")


def _die_with_parent(pipe: int) -> None:
    """The second string to PR_SET_PDEATHSIG, and it takes our helpers along."""
    poll = select.poll()
    poll.register(pipe, 0)  # hang-ups only: data, and the half-close of a farewell, are for the main thread
    poll.poll()
    os.killpg(0, signal.SIGKILL)


def _send(stream: socket.socket, reply: bytes) -> None:
    stream.sendall(REPLY.pack(len(reply)) + reply)


def _reply_to(call: bytes, memory: int) -> bytes:
    try:
        function, args = _Reader(BytesIO(call)).load()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it travels to the caller
        return _failure(error, f"its function or arguments cannot be read in a process: {_text(error)}")
    del call  # perhaps large, and of no use while the function runs
    try:
        with _allowed(memory):
            result = function(*args)
    except BaseException as error:  # noqa: BLE001 - as above
        return _failure(error)
    try:
        return _success(result)
    except Exception as error:  # noqa: BLE001 - as above
        return _failure(error, f"its result cannot be sent between processes: {_text(error)}")


@contextmanager
def _allowed(memory: int) -> Generator[None]:
    """By RLIMIT_DATA: it counts writable pages, where RLIMIT_AS also counts address space merely reserved."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if memory:
        limit = _in_use() + memory
        for other in (soft, hard):
            limit = limit if other == resource.RLIM_INFINITY else min(limit, other)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _in_use() -> int:
    with open("/proc/self/statm", "rb", buffering=0) as statm:  # bare: this is most of what a limit costs
        pages = statm.read().split()[5]  # data and stack
    return int(pages) * resource.getpagesize()


def _success(result: Any) -> bytes:
    return pickle.dumps((result, None, ""), pickle.HIGHEST_PROTOCOL)


def _failure(error: BaseException, permanent: str | None = None) -> bytes:
    """The error itself where it can travel; `permanent` is the sentence for one that no new try mends."""
    story = "".join(traceback.format_exception(error))
    if _lacks_memory(error):
        error = OutOfMemory("it ran out of memory")
    elif permanent:
        error = Permanent(permanent)
    elif not isinstance(error, Exception):  # SystemExit and its like would end the worker
        error = Transient(_text(error))
    try:
        reply = pickle.dumps((None, error, story))
        pickle.loads(reply)  # some errors can be written and not be read
    except Exception:  # noqa: BLE001 - pickling runs anybody's code
        return pickle.dumps((None, Transient(_text(error)), story))
    return reply


def _lacks_memory(error: BaseException | None) -> bool:
    """Also behind the error of a library that translated it."""
    if error is None:
        return False
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return "bad_alloc" in str(error) or _lacks_memory(error.__cause__ or error.__context__)


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


class _Reader(pickle.Unpickler):
    """Reads a call, and imports the parent's main module only when a call names something in it."""

    main: ClassVar[dict[str, Any]] = {}
    importing: ClassVar[bool] = False

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if module_name == "__main__" and _Reader.main:
            _Reader.importing = True
            try:
                spawn.prepare(_Reader.main)
            finally:
                _Reader.importing = False
            _Reader.main = {}
        return super().find_class(module_name, global_name)
