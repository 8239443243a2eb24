"""One Chromium for all tests of a process. Each test has visitors of its own in it: cookies, caches, windows."""

from collections.abc import AsyncIterator

import pytest_asyncio
from browser import share_browser

from gristmill.db import Database


@pytest_asyncio.fixture(scope="session", loop_scope="session", autouse=True)
async def chromium() -> AsyncIterator[None]:
    async with share_browser():
        yield


@pytest_asyncio.fixture(loop_scope="session")
async def db(url: str) -> AsyncIterator[Database]:
    """A fresh database with our schema, opened in the loop to which the browser belongs."""
    async with Database(url) as database:
        yield database
