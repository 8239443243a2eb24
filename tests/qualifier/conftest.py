"""What the tests of the qualifier share: their helpers, and a room to work in."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from item_desk import ItemDesk, open_desk

from gristmill.db import Database

sys.path.insert(0, str(Path(__file__).parent))

from workroom import Workroom


@pytest.fixture
def room(db: Database) -> Workroom:
    return Workroom(db)


@pytest.fixture
async def desk(url: str) -> AsyncIterator[ItemDesk]:
    """Items of one client, under a clock that stands where the items were written."""
    async with open_desk(url) as found:
        yield found
