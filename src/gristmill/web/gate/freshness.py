"""Gives what is polled an ETag: a browser or program that has it already gets a 304 without a body."""

import hashlib

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

KINDS = ("application/json", "text/html")
CACHING = {"Cache-Control": "private, no-cache", "Vary": "Authorization, Cookie, HX-Request, HX-Boosted"}


class Freshness:
    """Compares whole answers of GET with what the caller has; streams and files go through as they are."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await self._app(scope, receive, send)
            return
        known = Headers(scope=scope).get("if-none-match", "")
        start: Message | None = None

        async def send_fresh(message: Message) -> None:
            nonlocal start
            if message["type"] == "http.response.start" and is_comparable(message):
                start = message  # held back until its body shows whether it is new
                return
            if start is not None:
                begun, start = start, None
                if message["type"] == "http.response.body" and not message.get("more_body"):
                    message = compare(begun, message, known)
                await send(begun)
            await send(message)

        await self._app(scope, receive, send_fresh)


def is_comparable(start: Message) -> bool:
    headers = Headers(raw=start["headers"])
    kind = headers.get("content-type", "").partition(";")[0]
    return start["status"] == 200 and kind in KINDS and "etag" not in headers and "set-cookie" not in headers


def compare(start: Message, message: Message, known: str) -> Message:
    """The answer with its ETag, or a 304 if the caller has it."""
    body: bytes = message.get("body", b"")
    etag = f'W/"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'
    headers = MutableHeaders(raw=start["headers"])
    for name, value in {**CACHING, "ETag": etag}.items():
        headers[name] = value
    if etag not in [one.strip() for one in known.split(",")]:
        return message
    start["status"] = 304
    del headers["content-length"]
    del headers["content-type"]
    return {**message, "body": b""}
