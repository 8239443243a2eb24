"""A write with an Idempotency-Key is done once: a repetition gets the first answer, or hears what happened to it.

Bodies are not kept and not held back: a digest is made of what streams through. Only writes that took place are
remembered. A write that was refused changed nothing, and the same key may try again.
"""

import hashlib
import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gristmill.db import Database, queries
from gristmill.serving import Caller, Problem
from gristmill.web.access.audit import RunningWrite, current_write
from gristmill.web.gate.origins import SAFE

SQL = queries("gristmill.web.gate", "writes.sql")
HEADER = "idempotency-key"
LONGEST_KEY = 200
LARGEST_ANSWER = 256 * 1024
# after this time a write without an answer belongs to a process that is gone …
PATIENCE = timedelta(minutes=1)
PATIENCE_WITH_FILES = timedelta(hours=1)  # … if it brings so many bytes that they take a while
MANY = 1024**2
KEPT_HEADERS = ("content-type", "location", "hx-trigger", "hx-redirect")
AGAIN = {"Retry-After": "1"}


@dataclass(frozen=True)
class Write:
    """What is known of an earlier request with the same key."""

    head: bytes
    body: bytes | None
    is_committed: bool
    status: int | None
    headers: dict[str, str] | None
    answer: bytes | None
    is_abandoned: bool


@dataclass
class RouteAnswer:
    """The answer of a route, noted while it is sent."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = b""

    def note(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            found = Headers(raw=message["headers"])
            self.headers = {name: found[name] for name in KEPT_HEADERS if name in found}
            self.body = None if "no-store" in found.get("cache-control", "") else b""  # an answer with a secret
        elif message["type"] == "http.response.body" and self.body is not None:
            body = self.body + message.get("body", b"")
            self.body = body if len(body) <= LARGEST_ANSWER else None


class BodyDigest:
    """A digest of a body that is read by somebody else.

    The boundary between the parts of a form is left out: a program that repeats a request makes it anew.
    """

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._digest = hashlib.sha256()
        self._boundary = find_boundary(scope)
        self._rest = b""  # the end of what was read, in which a boundary may begin
        self._is_whole = False

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._update(message.get("body", b""))
            self._is_whole = self._is_whole or not message.get("more_body")
        return message

    def _update(self, piece: bytes) -> None:
        if not self._boundary:
            self._digest.update(piece)
            return
        text = (self._rest + piece).replace(self._boundary, b"")
        keep = len(self._boundary) - 1
        self._digest.update(text[: max(0, len(text) - keep)])
        self._rest = text[max(0, len(text) - keep) :]

    async def read_all(self) -> bytes:
        """The digest of a body that nobody else wants."""
        while not self._is_whole:
            if (await self.receive())["type"] != "http.request":
                break
        return self._digest.digest() + self._rest

    @property
    def value(self) -> bytes | None:
        return self._digest.digest() + self._rest if self._is_whole else None


def find_boundary(scope: Scope) -> bytes:
    kind, options = parse_options_header(Headers(scope=scope).get("content-type"))
    return options.get(b"boundary", b"") if kind == b"multipart/form-data" else b""


class WritesOnce:
    """Stands before all routes that change something."""

    def __init__(self, app: ASGIApp, db: Database) -> None:
        self._app = app
        self._db = db

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller: Caller | None = scope["state"]["caller"]
        key = Headers(scope=scope).get(HEADER)
        if key is None or caller is None or scope["method"] in SAFE:
            await self._app(scope, receive, send)
            return
        check_key(key)
        named, head = {"caller": caller.identity, "key": key}, digest_head(scope)
        async with self._db.reading() as tx:
            patience = choose_patience(scope)
            id = await tx.value(SQL["begin_write"], int, head=head, patience=patience, **named)
        if id is None:
            await self._repeat(named, head, scope, receive, send)
        else:
            await self._write(int(id), scope, receive, send)

    async def _write(self, id: int, scope: Scope, receive: Receive, send: Send) -> None:
        answer, body, start = RouteAnswer(), BodyDigest(scope, receive), list[Message]()

        async def send_noted(message: Message) -> None:
            answer.note(message)
            if message["type"] == "http.response.start":
                start.append(message)  # the caller hears of it when it is kept, and may then repeat it
                return
            if message["type"] == "http.response.body" and not message.get("more_body"):
                await self._finish(id, answer, body)
            for one in (*start, message):
                await send(one)
            start.clear()

        token = current_write.set(RunningWrite(id))
        try:
            await self._app(scope, body.receive, send_noted)
        except BaseException:
            await self._forget(id)
            raise
        finally:
            current_write.reset(token)

    async def _finish(self, id: int, answer: RouteAnswer, body: BodyDigest) -> None:
        if answer.status >= 400:
            await self._forget(id)
            return
        async with self._db.reading() as tx:
            await tx.execute(
                SQL["finish_write"],
                id=id,
                body=body.value,
                status=answer.status,
                headers=json.dumps(answer.headers),
                answer=answer.body,
            )
            await tx.flush()

    async def _forget(self, id: int) -> None:
        async with self._db.reading() as tx:
            await tx.execute(SQL["forget_write"], id=id)
            await tx.flush()

    async def _repeat(self, named: dict[str, str], head: bytes, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._db.reading() as tx:
            found = await tx.one(SQL["find_write"], Write, patience=choose_patience(scope), **named)
        if found is None:
            raise Problem(409, "The request with this Idempotency-Key has just failed: send it again.", headers=AGAIN)
        body = await BodyDigest(scope, receive).read_all() if found.status is not None else None
        check_same(found, head, body)
        await send_answer(found, send)


def check_key(key: str) -> None:
    if not 0 < len(key) <= LONGEST_KEY or not key.isprintable():
        raise Problem(422, f"An Idempotency-Key has 1 to {LONGEST_KEY} printable characters.")


def choose_patience(scope: Scope) -> timedelta:
    headers = Headers(scope=scope)
    announced = headers.get("content-length", "0")
    is_small = announced.isdecimal() and int(announced) <= MANY and "transfer-encoding" not in headers
    return PATIENCE if is_small else PATIENCE_WITH_FILES


def digest_head(scope: Scope) -> bytes:
    kind = Headers(scope=scope).get("content-type", "").partition(";")[0]  # the rest holds a boundary, made anew
    parts = (scope["method"], scope["path"], scope["query_string"].decode("latin-1"), kind)
    return hashlib.sha256("\n".join(parts).encode(errors="replace")).digest()


def check_same(found: Write, head: bytes, body: bytes | None) -> None:
    """Refuse what is not a repetition of that write, and one whose answer is not there."""
    if found.head != head or (found.body is not None and body is not None and found.body != body):
        raise Problem(422, "This Idempotency-Key was used for another request: choose a new one for each.")
    if found.status is None and found.is_committed and found.is_abandoned:
        raise Problem(409, "This was done, but the server ended before it could answer: look at what was changed.")
    if found.status is None:
        raise Problem(409, "The request with this Idempotency-Key is still being done: wait for it.", headers=AGAIN)
    if found.answer is None:
        raise Problem(409, "This was done before; its answer was not kept.")


async def send_answer(found: Write, send: Send) -> None:
    assert found.answer is not None
    headers = {**(found.headers or {}), "content-length": str(len(found.answer)), "idempotency-replayed": "true"}
    lines = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": found.status, "headers": lines})
    await send({"type": "http.response.body", "body": found.answer})


def describe_header() -> dict[str, Any]:
    """For the OpenAPI document."""
    return {
        "name": "Idempotency-Key",
        "in": "header",
        "required": False,
        "description": "A text of your own: the same key and body get the same answer again, for 24 hours.",
        "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST_KEY, "pattern": "^[!-~]+$"},
    }
