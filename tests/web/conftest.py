"""What tests of the web ask for: `web` is the application over a fresh database, with a key for every caller."""

from collections.abc import AsyncIterator

import pytest
from serving import Web, serve

from gristmill.db import Database


@pytest.fixture
async def web(db: Database) -> AsyncIterator[Web]:
    async with serve(db) as opened:
        yield opened
