"""Ends a copy of the worker that a handler forked by mistake: the copy would settle the same tasks again."""

import os
import signal
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

from typing_extensions import override

R = TypeVar("R")

LEFT = 1  # exit code of a copy
SENTENCE = b"A process that a handler forked came back from the handler and was ended: end it there, with os._exit.\n"
_forks = 0  # between the first process of this program and this one
_keeps_signals = True


def fork_generation() -> int:
    """How many forks lie between the first process of this program and this one."""
    return _forks


def end_copy(born: int) -> None:
    """End this process if it was forked since generation `born`, without cleaning up: all it has is its parent's."""
    if born != _forks:
        os.write(2, SENTENCE)
        os._exit(LEFT)


def drop_signals_in_copies() -> None:
    """From now on a signal ends a copy; else the copy would pass it on to its parent as the parent's own."""
    global _keeps_signals
    _keeps_signals = False


def _in_copy() -> None:
    global _forks
    _forks += 1
    if not _keeps_signals:
        signal.set_wakeup_fd(-1)
        for which in (signal.SIGTERM, signal.SIGINT):
            signal.signal(which, signal.SIG_DFL)


os.register_at_fork(after_in_child=_in_copy)


class ForkSafe(Coroutine[Any, Any, R]):
    """A coroutine whose code may fork: the copy ends when it would return to the event loop."""

    def __init__(self, inner: Coroutine[Any, Any, R]) -> None:
        self._inner = inner
        self._born = _forks

    @override
    def send(self, value: Any, /) -> Any:
        try:
            return self._inner.send(value)
        finally:
            end_copy(self._born)

    @override
    def throw(self, *error: Any) -> Any:
        try:
            return self._inner.throw(*error)
        finally:
            end_copy(self._born)

    @override
    def close(self) -> None:
        self._inner.close()

    @override
    def __await__(self) -> Generator[Any, Any, R]:
        return self._inner.__await__()
