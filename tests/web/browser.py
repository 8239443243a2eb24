"""A real Chromium over a real server, for tests and screenshots of the console.

`async with open_site(db) as site, open_browser() as browser` serves the console on loopback; `site.open_page(browser)`
is a page that has come by the one-time link. Whatever the page complains of ends the test: an error of a script, a file
that is not there, a breach of the content policy.
"""

import os
import re
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from axe_playwright_python.base import AXE_FILE_PATH, AXE_SCRIPT
from playwright.async_api import Browser, ConsoleMessage, Page, async_playwright

from gristmill.app import ROOMS
from gristmill.db import Database
from gristmill.knowledge import Finder
from gristmill.scopes import Scope
from gristmill.serving import Caller, Role
from gristmill.settings import Settings
from gristmill.web import add_key, open_web

CHROMIUM = os.environ.get("GRISTMILL_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = (
    "--no-sandbox",  # tests may run as root, where Chromium has no sandbox
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-first-run",
    # a page lives for a second here: to optimise its scripts takes a fifth more than they save
    "--js-flags=--no-turbofan --no-maglev",
)
HINT = "there is no Chromium: apt-get install chromium (make test does so, as root on Debian)"
# in the loop of the session, to which the browser belongs that all tests of a process share
needs_chromium = [pytest.mark.skipif(CHROMIUM is None, reason=HINT), pytest.mark.asyncio(loop_scope="session")]
AWAY = ("ERR_CONNECTION_REFUSED", "htmx:sendError", "htmx:afterRequest")  # a server that is stopped on purpose
BARRIERS = Path(__file__).with_name("barriers.js")
LOOKS: list[int] = []  # that axe has found good so far in this process: see BARRIERS


@dataclass
class Site:
    """The console on a port of its own; it can be stopped, and started again on the same port."""

    db: Database
    settings: Settings
    finder: Finder
    running: AsyncExitStack
    link: str = ""
    problems: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        return self.link.partition("/?")[0]

    async def start(self) -> None:
        serving = await self.running.enter_async_context(open_web(self.db, self.settings, ROOMS, self.finder))
        self.link = serving.link
        self.settings = self.settings.model_copy(
            update={"web": self.settings.web.model_copy(update={"port": serving.port})}
        )

    async def stop(self) -> None:
        await self.running.aclose()

    async def open_page(
        self, browser: Browser, *, width: int = 1440, dark: bool = False, scripts: bool = True, quiet: bool = True
    ) -> Page:
        """A page of a new visitor who has used the link; `quiet` leaves out motion."""
        context = await browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=scripts,
            reduced_motion="reduce" if quiet else "no-preference",
        )
        page = await context.new_page()
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: self.problems.append(f"{page.url}: {error}"))
        page.on("console", self.note_complaint)
        if scripts:
            await self.sign_in(page)
        return page

    async def sign_in(self, page: Page) -> None:
        await page.goto(self.link)
        await page.wait_for_selector("nav.side")
        await page.wait_for_load_state("load")
        # the link opens once: the next page needs another
        self.link = await renew_link(self.db, self.settings, self.address)

    async def open_with_key(self, browser: Browser, role: Role, scope: Scope | None = None) -> Page:
        """A page of somebody who has signed in with a new key; what is refused is no complaint."""
        page = await (await browser.new_context()).new_page()
        await page.goto(f"{self.address}/sign-in")
        await page.locator("input[name=key]").fill(await self.make_key(role, scope))
        await page.keyboard.press("Enter")
        await page.wait_for_selector("nav.side")
        return page

    async def make_key(self, role: Role, scope: Scope | None = None) -> str:
        operator = Caller("operator", "admin", None, "test")
        async with self.db.transaction() as tx:
            return (await add_key(tx, operator, f"{role} {uuid4()}", role, scope)).secret

    @asynccontextmanager
    async def call(self) -> AsyncIterator[httpx.AsyncClient]:
        """A program that calls this site with a key of the operator."""
        headers = {"Authorization": f"Bearer {await self.make_key('admin')}"}
        async with httpx.AsyncClient(base_url=self.address, headers=headers, timeout=120) as client:
            yield client

    def note_complaint(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not any(word in message.text for word in AWAY):
            self.problems.append(f"{message.location.get('url')}: {message.text}")


async def renew_link(db: Database, settings: Settings, address: str) -> str:
    from gristmill.web.access.signing_in import make_link  # noqa: PLC0415 a test may look behind the door

    async with db.transaction() as tx:
        return f"{address}/?token={await make_link(tx, settings.web)}"


@asynccontextmanager
async def open_site(db: Database, settings: Settings | None = None) -> AsyncIterator[Site]:
    chosen = settings or Settings()
    chosen = chosen.model_copy(update={"web": chosen.web.model_copy(update={"port": 0})})
    async with Finder(db, chosen) as finder, AsyncExitStack() as running:
        site = Site(db, chosen, finder, running)
        await site.start()
        yield site
        await site.stop()
    assert not site.problems, "\n".join(site.problems)


@asynccontextmanager
async def open_browser() -> AsyncGenerator[Browser]:
    """The browser that the tests share, or one of its own; at the end, all that its visitors opened is closed."""
    async with AsyncExitStack() as stack:
        browser = SHARED[-1] if SHARED else await stack.enter_async_context(start_browser())
        try:
            yield browser
        finally:
            for context in list(browser.contexts):
                await context.close()


SHARED: list[Browser] = []


@asynccontextmanager
async def share_browser() -> AsyncGenerator[None]:
    """Until the end, `open_browser` starts none: with its driver, that takes longer than many a test."""
    async with start_browser() as browser:
        SHARED.append(browser)
        try:
            yield
        finally:
            SHARED.remove(browser)


@asynccontextmanager
async def start_browser() -> AsyncGenerator[Browser]:
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            await browser.close()


async def look_for_barriers(page: Page, paths: Sequence[str]) -> list[str]:
    """What keeps people from using these pages: barriers, and that a page moves sideways.

    The frame is that of every page: it is looked at on the first one.
    """
    # from the next page on, axe is there from the beginning: the browser compiles it once, not for each page
    if not await has_axe(page):
        for script in (AXE_FILE_PATH, BARRIERS):
            await page.add_init_script(path=script)
    found: list[str] = []
    for place, path in enumerate(paths):
        await page.goto(re.sub(r"^(\w+://[^/]+).*", rf"\1{path}", page.url))
        await page.wait_for_load_state("load")
        found += await find_barriers(page, frame=place == 0)
        found += [f"{path} moves sideways at {page.viewport_size}"] if await overflows(page) else []
    return found


async def find_barriers(page: Page, *, frame: bool = True) -> list[str]:
    """What axe finds serious or critical on a page: one line for each, with the element."""
    if not await has_axe(page):
        for script in (AXE_SCRIPT, BARRIERS.read_text("utf-8")):
            await page.evaluate(script)
    lines, looks = await page.evaluate("given => findBarriers(given)", {"frame": frame, "known": LOOKS})
    LOOKS.extend(looks)
    return [f"{page.url} {one}" for one in lines]


async def has_axe(page: Page) -> bool:
    return await page.evaluate("'findBarriers' in window")


async def overflows(page: Page) -> bool:
    """Whether the page can be moved sideways."""
    return await page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
