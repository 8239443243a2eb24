"""Binds a kind of letter to what answers it, and says how that is run."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeVar, overload

from gristmill.queue.letters import Letter, queue_of


@dataclass(frozen=True)
class Handler:
    """`run` takes a letter (or a list of them) and returns an Answer, or a plain value that becomes Done's result."""

    letter: type[Letter]
    run: Callable[..., Any]
    mode: Literal["async", "thread", "process"]
    batch: int | None = None  # how many letters one call takes at most; None: one letter, not a list
    timeout: timedelta | None = None  # None: as the queue says
    memory: int | None = None  # bytes a call may use, in process mode
    at_once: int | None = None  # how many calls run in one worker; None: as many as it has slots or children for
    streams: bool = False  # an async generator: answers of a batch as they come, each with the place of its letter

    @property
    def queue(self) -> str:
        return queue_of(self.letter)


Handlers = Mapping[str, Handler]


L = TypeVar("L", bound=Letter)
One = Callable[[L], object]
Batch = Callable[[list[L]], Awaitable[Sequence[object]] | Sequence[object]]
Stream = Callable[[list[L]], AsyncIterator[tuple[int, object]]]


@overload
def on(
    letter: type[L],
    run: One[L],
    *,
    process: bool = False,
    batch: None = None,
    timeout: timedelta | None = None,
    memory: int | None = None,
    at_once: int | None = None,
) -> Handler: ...
@overload
def on(
    letter: type[L],
    run: Batch[L],
    *,
    process: bool = False,
    batch: int,
    timeout: timedelta | None = None,
    memory: int | None = None,
    at_once: int | None = None,
) -> Handler: ...
@overload
def on(
    letter: type[L],
    run: Stream[L],
    *,
    batch: int,
    timeout: timedelta | None = None,
    at_once: int | None = None,
) -> Handler: ...
def on(
    letter: type[Letter],
    run: Callable[..., Any],
    *,
    process: bool = False,
    batch: int | None = None,
    timeout: timedelta | None = None,
    memory: int | None = None,
    at_once: int | None = None,
) -> Handler:
    """A coroutine function runs in the loop, a plain one in a thread or, with `process`, in a child process.

    `at_once` is for calls that wait for something scarce: more of them would only keep other queues from their slots.
    An async generator takes a batch, too, and yields (place in the list, answer) for each letter in any order: what it
    has answered is settled while it goes on with the others.
    """
    function = run
    while hasattr(function, "func"):  # what a partial wraps decides
        function = function.func  # type: ignore[attr-defined]
    streams = inspect.isasyncgenfunction(function)
    is_async = streams or inspect.iscoroutinefunction(function)
    if streams and not batch:
        raise ValueError(f"{letter.kind}: an async generator answers batches; say how many letters it takes")
    if process and is_async:
        raise ValueError(f"{letter.kind}: a coroutine cannot run in a child process; bind a plain function")
    mode = "process" if process else "async" if is_async else "thread"
    return Handler(letter, run, mode, batch, timeout, memory, at_once, streams)


def bind(*handlers: Handler) -> Handlers:
    """Handlers by the kind they answer; each kind once."""
    kinds: dict[str, Handler] = {}
    for handler in handlers:
        if handler.letter.kind in kinds:
            raise ValueError(f"two handlers answer {handler.letter.kind}")
        kinds[handler.letter.kind] = handler
    return kinds
