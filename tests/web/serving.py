"""The web for tests: the whole application over a real database, and a client for every kind of caller.

`async with serve(db) as web` opens it; `web.client("operator")`, `web.client("acme viewer")`, `web.client(None)` are
httpx clients that call it without a network, with the key of that caller.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import httpx
from fastapi import FastAPI
from starlette.types import ASGIApp

from gristmill.app import ROOMS
from gristmill.db import Database
from gristmill.knowledge import Finder
from gristmill.scopes import Scope
from gristmill.serving import Caller
from gristmill.settings import Settings
from gristmill.web import add_key
from gristmill.web.application import create_app

ADDRESS = "http://127.0.0.1:6455"
OPERATOR = Caller("operator", "admin", None, "test")
ACME, ONE, GLOBEX = Scope("acme"), Scope("acme", "one"), Scope("globex")
# name: role and scope of the key; “operator” sees all clients
CALLERS: Mapping[str, tuple[str, Scope | None]] = {
    "operator": ("admin", None),
    "operator manager": ("manager", None),
    "operator viewer": ("viewer", None),
    **{f"{scope} {role}": (role, scope) for scope in (ACME, ONE, GLOBEX) for role in ("viewer", "manager", "admin")},
}


@dataclass
class Web:
    """The application, and the keys of all callers."""

    app: FastAPI
    db: Database
    keys: dict[str, str]
    stack: AsyncExitStack
    entrance: ASGIApp | None = None  # stands before the application, if a test wants it
    clients: dict[str | None, httpx.AsyncClient] = field(default_factory=dict)

    def client(self, caller: str | None) -> httpx.AsyncClient:
        """Calls as this caller; None has no key. Cookies are kept, as a browser does."""
        if caller not in self.clients:
            self.clients[caller] = self.make_client(self.keys[caller] if caller else None)
        return self.clients[caller]

    def make_client(self, key: str | None = None, address: str = "127.0.0.1") -> httpx.AsyncClient:
        """A new one, with no cookie of another."""
        transport = httpx.ASGITransport(self.entrance or self.app, raise_app_exceptions=False, client=(address, 50_000))
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=headers)

    def make_twin(self, settings: Settings) -> "Web":
        """Another server process over the same database."""
        services = self.app.state.services
        return Web(create_app(self.db, settings, ROOMS, services.finder), self.db, self.keys, self.stack)

    def make_browser(self, address: str = "127.0.0.1") -> "Browser":
        return Browser(self.make_client(address=address))


class Browser:
    """A browser that signs in and sends what browsers send: cookies, the origin of a page, the token of its forms."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def sign_in(self, key: str) -> httpx.Response:
        return await self.client.post("/sign-in", data={"key": key}, headers=SAME_ORIGIN)

    async def read_token(self) -> str:
        """The token that the forms of this session carry; empty if the browser is signed out."""
        page = await self.client.get("/nowhere")
        found = re.search(r"X-CSRF-Token[^0-9a-f]*([0-9a-f]{64})", page.text)
        return found[1] if found else ""


SAME_ORIGIN = {"Origin": ADDRESS, "Sec-Fetch-Site": "same-origin"}


@asynccontextmanager
async def serve(db: Database, settings: Settings | None = None) -> AsyncIterator[Web]:
    chosen = settings or Settings()
    async with AsyncExitStack() as stack:
        finder = await stack.enter_async_context(Finder(db, chosen))
        web = Web(create_app(db, chosen, ROOMS, finder), db, await add_keys(db), stack)
        try:
            yield web
        finally:
            for client in web.clients.values():
                await client.aclose()
            await web.app.state.services.close()


async def add_keys(db: Database) -> dict[str, str]:
    async with db.transaction() as tx:
        return {
            name: (await add_key(tx, OPERATOR, name, role, scope)).secret  # type: ignore[arg-type]
            for name, (role, scope) in CALLERS.items()
        }
