"""Bounds how often one caller asks: a bucket in the database for all servers together, from which each takes portions.

A portion serves several requests of the next seconds, so that most requests cost no statement.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from weakref import WeakValueDictionary

from starlette.types import ASGIApp, Receive, Scope, Send

from gristmill.db import Database, queries
from gristmill.serving import Caller, Problem
from gristmill.settings import WebSettings

SQL = queries("gristmill.web.gate", "rates.sql")
LIFETIME = 10.0  # seconds for which a portion may be used
PAUSE = 0.5  # seconds for which a caller with an empty bucket is refused without a look at the database
MOST = 10_000  # callers that one server remembers


@dataclass
class RequestPortion:
    """What one server may let through for one caller, until then."""

    left: int
    until: float
    is_refusal: bool = False


class RateLimit:
    """Lets every caller through as often as its bucket allows; who has no key reaches nothing that costs."""

    def __init__(self, app: ASGIApp, db: Database, settings: WebSettings) -> None:
        self._app = app
        self._db = db
        self._rate, self._burst = settings.rate, settings.burst
        self._portion = max(1, min(settings.rate // 10, settings.burst))
        self._portions: OrderedDict[str, RequestPortion] = OrderedDict()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller | None = scope["state"]["caller"]
        if caller is not None and not await self._may_pass(caller.identity):
            raise Problem(
                429, f"This key asks too often: {self._rate} requests a second are let through.", headers=AGAIN
            )
        await self._app(scope, receive, send)

    async def _may_pass(self, caller: str) -> bool:
        held = self._find(caller) or await self._take_turn(caller)
        if held.left <= 0:
            return False
        held.left -= 1
        return True

    def _find(self, caller: str) -> RequestPortion | None:
        """The portion at hand, if it is of any use."""
        held, now = self._portions.get(caller), asyncio.get_running_loop().time()
        return held if held and now < held.until and (held.left or held.is_refusal) else None

    async def _take_turn(self, caller: str) -> RequestPortion:
        """Of many requests at once, one takes a portion for all: every further portion would be wasted."""
        turn = self._turns.setdefault(caller, asyncio.Lock())
        async with turn:
            return self._find(caller) or await self._take(caller)

    async def _take(self, caller: str) -> RequestPortion:
        now = asyncio.get_running_loop().time()
        async with self._db.reading() as tx:
            given = await tx.value(
                SQL["take_portion"], int, caller=caller, rate=self._rate, burst=self._burst, portion=self._portion
            )
        portion = (
            RequestPortion(self._portion, now + LIFETIME) if given else RequestPortion(0, now + PAUSE, is_refusal=True)
        )
        self._portions[caller] = portion
        self._portions.move_to_end(caller)
        if len(self._portions) > MOST:
            self._portions.popitem(last=False)
        return portion


AGAIN = {"Retry-After": "1"}
