"""Ends a coroutine at one of its awaits, as a kill would: nothing after that await happens."""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any


class Killed(Exception):
    """The coroutine was ended on its way."""


class KilledAt:
    """`await KilledAt(n, coroutine)` ends it at its nth await, or gives back what it returns."""

    def __init__(self, n: int, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.left = n  # awaits that it may come to
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        value: Any = None
        while True:
            try:
                awaited = self._coroutine.send(value)
            except StopIteration as done:
                return done.value
            self.left -= 1
            if self.left < 0:
                break
            value = yield awaited
        if isinstance(awaited, asyncio.Future):
            awaited.cancel()
        try:
            # the connection to the database is given up, and its transaction is rolled back, as after a kill
            awaited = self._coroutine.throw(asyncio.CancelledError())
            while True:
                value = yield awaited
                awaited = self._coroutine.send(value)
        except (StopIteration, asyncio.CancelledError):
            raise Killed from None
