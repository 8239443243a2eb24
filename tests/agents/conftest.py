"""A workbench for every test that asks for one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from workbench import Workbench, open_workbench

from gristmill.db import Database


@pytest.fixture
async def bench(db: Database, tmp_path: Path) -> AsyncIterator[Workbench]:
    async with open_workbench(db, tmp_path) as opened:
        yield opened
