"""Repeats a request that only reads, if the database broke off: callers should not notice its short restart."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gristmill.errors import Disconnected
from gristmill.web.gate.origins import SAFE

LAST_TRY = "is_last_try"  # in the state of a request


class SecondTry:
    """Runs a request that reads once more; what has begun to answer is not repeated."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in SAFE:
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def send_noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(copy_scope(scope, is_last_try=False), receive, send_noted)
        except Disconnected:
            if has_begun:
                raise
            await self._app(copy_scope(scope, is_last_try=True), receive, send)


def copy_scope(scope: Scope, *, is_last_try: bool) -> Scope:
    """A scope of its own for each try: layers and routes write into it."""
    return {**scope, "state": {**scope.get("state", {}), LAST_TRY: is_last_try}}


def may_be_repeated(scope: Scope, error: Exception) -> bool:
    """Whether this failure is better left to a second try than told to the caller."""
    return isinstance(error, Disconnected) and scope.get("state", {}).get(LAST_TRY) is False
