"""A workbench for every test that asks for one."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "qualifier"))  # items for runs

from workbench import Workbench, open_workbench

from gristmill.db import Database


@pytest.fixture
async def bench(db: Database, tmp_path: Path) -> AsyncIterator[Workbench]:
    async with open_workbench(db, tmp_path) as opened:
        yield opened
