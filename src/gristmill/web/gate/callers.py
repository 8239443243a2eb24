"""Finds out who calls, by key or by session, and makes sure that a browser asks because its user wants it to."""

from dataclasses import replace
from urllib.parse import parse_qs, unquote

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.scopes import Scope as Client
from gristmill.serving import Caller, Problem
from gristmill.settings import WebSettings
from gristmill.web.access.identity import Identity, identify_key, identify_session
from gristmill.web.access.secrets import LONGEST, are_equal, derive
from gristmill.web.gate.bodies import refuse_body
from gristmill.web.gate.origins import SAFE

TOKEN_HEADER = "x-csrf-token"
TOKEN_FIELD = "csrf"
FORM = "application/x-www-form-urlencoded"
OPEN = ("/static/", "/healthz", "/readyz", "/sign-in")  # nobody is asked for a name there
CRON = "/api/workers/"  # its routes ask for the secret of cron, which is no key
UNKNOWN_KEY = "This key is unknown or was revoked: check it, or ask for another."


class CallerCheck:
    """Puts the caller into the state of the request. Routes decide whether they need one, and of which role."""

    def __init__(self, app: ASGIApp, db: Database, settings: WebSettings) -> None:
        self._app = app
        self._db = db
        self._body_limit = settings.body_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        state = scope.setdefault("state", {})
        state["caller"] = state["session"] = None
        if not scope["path"].startswith((*OPEN, CRON)):
            if key := headers.get("authorization"):
                state["caller"] = await self._find_by_key(scope, key)
            elif secret := find_session_cookie(scope, headers):
                state["caller"] = await self._find_by_session(scope, secret)
                if state["caller"] is not None:
                    state["session"] = secret
                    state["caller"] = narrow_to_client(state["caller"], scope, headers)
                    receive = await check_token(scope, receive, headers, secret, self._body_limit)
        await self._app(scope, receive, send)

    async def _find_by_key(self, scope: Scope, authorization: str) -> Caller:
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() != "bearer" or not 0 < len(key.strip()) <= LONGEST:
            raise Problem(401, "Send the key as “Authorization: Bearer …”.", headers=CHALLENGE)
        async with self._db.reading() as tx:
            found = await identify_key(tx, key.strip())
        if found is None:
            raise Problem(401, UNKNOWN_KEY, headers=CHALLENGE)
        return make_caller(found, scope)

    async def _find_by_session(self, scope: Scope, secret: str) -> Caller | None:
        async with self._db.reading() as tx:
            found = await identify_session(tx, secret)
        return None if found is None else make_caller(found, scope)


CHALLENGE = {"WWW-Authenticate": "Bearer"}


def make_caller(found: Identity, scope: Scope) -> Caller:
    return Caller(found.name, found.role, found.bound_to, address_of(scope), found.key)


def address_of(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else "unknown"


# --- cookies


def name_cookie(scope: Scope) -> str:
    """Browsers send cookies to every port of a machine: two servers must not sign each other's users out."""
    port = Headers(scope=scope).get("host", "").rpartition(":")[2]
    name = f"gristmill_{port}" if port.isdecimal() else "gristmill"
    return f"__Host-{name}" if is_encrypted(scope) else name


def is_encrypted(scope: Scope) -> bool:
    """Whether a cookie must be for https alone: browsers take no `__Host-` cookie that is not."""
    return scope.get("scheme") == "https"


def find_session_cookie(scope: Scope, headers: Headers) -> str | None:
    secret = cookie_parser(headers.get("cookie", "")).get(name_cookie(scope))
    return secret if secret and len(secret) <= LONGEST else None


def name_view_cookie(scope: Scope) -> str:
    return f"{name_cookie(scope)}_view"


def narrow_to_client(caller: Caller, scope: Scope, headers: Headers) -> Caller:
    """An operator may look through the eyes of one client: what that client may not see is hidden here, too."""
    client = unquote(cookie_parser(headers.get("cookie", "")).get(name_view_cookie(scope), ""))
    if not client or not caller.is_operator:
        return caller
    try:
        return replace(caller, bound_to=Client(client), is_narrowed=True)
    except Refused:  # a cookie that somebody wrote by hand
        return caller


# --- forged requests


def token_of(connection: HTTPConnection) -> str:
    """The token that the forms of this session carry: no other site can read it or compute it."""
    secret = getattr(connection.state, "session", None)
    return derive(secret, "csrf") if secret else ""


async def check_token(scope: Scope, receive: Receive, headers: Headers, secret: str, most: int) -> Receive:
    """Refuse a change that a browser sends without the token of its session; what was read of it is given back."""
    if scope["type"] != "http" or scope["method"] in SAFE:
        return receive
    given = headers.get(TOKEN_HEADER)
    if given is None and headers.get("content-type", "").partition(";")[0].strip().lower() == FORM:
        body = await read_form(receive, most)
        given = next(iter(parse_qs(body.decode(errors="replace")).get(TOKEN_FIELD, [])), None)
        receive = replay(body, receive)
    if given is None or not are_equal(given, derive(secret, "csrf")):
        raise Problem(403, "This page is too old to change something: load it again.")
    return receive


async def read_form(receive: Receive, most: int) -> bytes:
    """The whole body of a form: it is held in memory, so it is bounded here, before `BodyLimit` counts it."""
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > most:
            raise refuse_body(most)
        if message["type"] != "http.request" or not message.get("more_body"):
            return body


def replay(body: bytes, receive: Receive) -> Receive:
    is_given = False

    async def receive_again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
