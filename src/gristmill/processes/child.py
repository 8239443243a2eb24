"""The program of a child process: it reads calls from its pipe, makes them within their limits, and replies.

A fresh interpreter loads this file with all doors closed (`gristmill.doors`), so it imports little: importing all of
Gristmill that a parent has takes ten times as long. A call imports the modules that it needs.
"""

import ctypes
import errno
import os
import pickle
import resource
import select
import signal
import socket
import struct
import threading
import time
import traceback
from collections.abc import Generator
from contextlib import contextmanager, suppress
from io import BytesIO
from multiprocessing import spawn
from pathlib import Path
from typing import Any, ClassVar, Literal

from gristmill.errors import Permanent, Transient

CALL = struct.Struct("!QQ")  # length, and bytes of memory it may use (0: any)
REPLY = struct.Struct("!cQ")  # what it is, and its length
ANSWER: Literal[b"a"] = b"a"  # the end of a call
NEWS: Literal[b"n"] = b"n"  # something the call says on its way
STORY = 20_000  # characters of a traceback, from its end: an error may carry a book
TEXT = 2_000  # characters of an error's own text
TOGETHER = 0.02  # seconds for which words are collected; the first word after them sends all …
SILENCE = 0.1  # … and if no other word comes, all are sent after so many seconds
_context: Any = None  # of the call that runs; None in any other process than a child

LEFT = 1  # exit code of a process that a call forked, and that came back from it


class OutOfMemory(Transient):
    """The call needed more memory than it may use."""


def serve(pipe: int, parent: int, nice: int) -> None:
    """Make calls until the pipe ends."""
    _settle_in(parent)
    os.nice(nice)
    os.set_inheritable(pipe, False)
    with socket.socket(fileno=pipe) as stream, stream.makefile("rb") as calls:
        threading.Thread(target=_die_with_parent, args=[pipe], daemon=True).start()
        threading.Thread(target=_pass_on, daemon=True).start()
        length, _ = CALL.unpack(calls.read(CALL.size))
        CallReader.main = pickle.loads(calls.read(length))
        _send(stream, _pack(ANSWER, _success(None)))
        _Pipe.stream = stream
        os.register_at_fork(after_in_child=_leave_pipe)
        while header := calls.read(CALL.size):
            length, memory = CALL.unpack(header)
            _send(stream, _pack(ANSWER, _reply_to(calls.read(length), memory)))


class _Pipe:
    """The pipe to the caller; `stream` is None in every process that is no child, also in one that a call forked."""

    stream: ClassVar[socket.socket | None] = None
    lock: ClassVar[threading.Lock] = threading.Lock()  # a call may have threads of its own
    words: ClassVar[bytearray] = bytearray()  # said and not yet sent
    since: ClassVar[float] = 0.0  # when the first of them was said
    said: ClassVar[threading.Event] = threading.Event()


def tell(news: Any, *, now: bool = False) -> None:
    """Say something to the caller before the call ends: at once if `now`, else soon and together with later words."""
    if _Pipe.stream is None:
        return
    word = _pack(NEWS, pickle.dumps(news, pickle.HIGHEST_PROTOCOL))
    moment = time.monotonic()
    with _Pipe.lock:
        if not _Pipe.words:
            _Pipe.since = moment
        _Pipe.words += word
    if now:
        _send(_Pipe.stream)
    elif moment - _Pipe.since > TOGETHER:
        with suppress(OSError):  # the caller is gone, and this process is about to end
            _send(_Pipe.stream)
    elif not _Pipe.said.is_set():
        _Pipe.said.set()


def call_context() -> Any:
    """What the caller said about the call that runs here (`context=`); None in any other process than a child."""
    return _context


def _pass_on() -> None:
    """Send the words that wait, at most ten times a second: the call may say nothing more for a long time.

    Sending each word by itself would wake the caller each time, which costs more than the word. This thread costs
    something, too: whenever it wakes up, it and the call pass the interpreter's lock to each other several times.
    """
    while _Pipe.said.wait():
        time.sleep(SILENCE)  # noqa: TID251 a thread by itself, for which nobody waits
        _Pipe.said.clear()
        if _Pipe.stream is not None:
            with suppress(OSError):  # as above
                _send(_Pipe.stream)


def _leave_pipe() -> None:
    """In a process that a call forked: the caller could not tell its words from ours."""
    _Pipe.stream = None


def _settle_in(parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends us
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # the parent died before we could ask to die with it
    # A crash is expected here: no gigabytes of core with somebody's documents in them.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    with suppress(OSError):  # when memory runs out, the system should end us before the worker or its database
        Path("/proc/self/oom_score_adj").write_text("500")


def _die_with_parent(pipe: int) -> None:
    """A second safeguard beside PR_SET_PDEATHSIG; it also ends the helpers that a call started."""
    poll = select.poll()
    poll.register(pipe, 0)  # hang-ups only: data, and the half-close of a farewell, are for the main thread
    poll.poll()
    os.killpg(0, signal.SIGKILL)


def _pack(kind: bytes, body: bytes) -> bytes:
    return REPLY.pack(kind, len(body)) + body


def _send(stream: socket.socket, more: bytes = b"") -> None:
    """Send the words that wait, then `more`."""
    with _Pipe.lock:
        if _Pipe.words:
            stream.sendall(_Pipe.words)
            _Pipe.words.clear()
        if more:
            stream.sendall(more)


def _reply_to(call: bytes, memory: int) -> bytes:
    global _context
    try:
        function, args, _context = CallReader(BytesIO(call)).load()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it travels to the caller
        return _failure(error, f"its function or arguments cannot be read in a process: {_text(error)}")
    del call  # perhaps large, and of no use while the function runs
    ours = os.getpid()
    try:
        try:
            with _limit_memory(memory):
                result = function(*args)
        finally:
            if os.getpid() != ours:  # a copy that the function forked: the original replies, and a call has one reply
                os._exit(LEFT)
    except BaseException as error:  # noqa: BLE001 - as above
        return _failure(error)
    try:
        return _success(result)
    except Exception as error:  # noqa: BLE001 - as above
        return _failure(error, f"its result cannot be sent between processes: {_text(error)}")


@contextmanager
def _limit_memory(memory: int) -> Generator[None]:
    """Limit memory by RLIMIT_DATA: it counts writable pages, RLIMIT_AS also reserved addresses."""
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if memory:
        limit = _memory_in_use() + memory
        for other in (soft, hard):
            limit = limit if other == resource.RLIM_INFINITY else min(limit, other)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))
    try:
        yield
    finally:
        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _memory_in_use() -> int:
    with open("/proc/self/statm", "rb", buffering=0) as statm:  # unbuffered: this is most of a limit's cost
        pages = statm.read().split()[5]  # data and stack
    return int(pages) * resource.getpagesize()


def _success(result: Any) -> bytes:
    return pickle.dumps((result, None, ""), pickle.HIGHEST_PROTOCOL)


def _failure(error: BaseException, permanent: str | None = None) -> bytes:
    """A reply with the error, itself if it can be pickled; `permanent` is the sentence where no new try would help."""
    story = "".join(traceback.format_exception(error))[-STORY:]
    if _lacks_memory(error):
        error = OutOfMemory("it ran out of memory")
    elif permanent:
        error = Permanent(permanent)
    elif not isinstance(error, Exception):  # SystemExit and its like would end the worker
        error = Transient(_text(error))
    try:
        reply = pickle.dumps((None, error, story))
        pickle.loads(reply)  # some errors can be pickled and then not be read
    except Exception:  # noqa: BLE001 - pickling runs anybody's code
        return pickle.dumps((None, Transient(_text(error)), story))
    return reply


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether memory ran out, also if a library raised an error of its own for it."""
    if error is None:
        return False
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return "bad_alloc" in str(error) or _lacks_memory(error.__cause__ or error.__context__)


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:TEXT]


class CallReader(pickle.Unpickler):
    """Reads a call, and imports the parent's main module only when a call names something in it."""

    main: ClassVar[dict[str, Any]] = {}
    importing: ClassVar[bool] = False

    def find_class(self, module_name: str, global_name: str, /) -> Any:
        if module_name == "__main__" and CallReader.main:
            CallReader.importing = True
            try:
                spawn.prepare(CallReader.main)
            finally:
                CallReader.importing = False
            CallReader.main = {}
        return super().find_class(module_name, global_name)
