"""A house that loads tables."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from tables import House, open_house

from gristmill.db import Database


@pytest_asyncio.fixture
async def house(db: Database, tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(db, tmp_path) as opened:
        yield opened
