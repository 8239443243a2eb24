"""What the tests of documents share: the children with the models, whose start takes longer than the tests."""

from collections.abc import AsyncIterator

import pytest_asyncio

from documents.grindstone import a_model_pool
from gristmill.db import Database
from gristmill.models import ModelPool


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def models() -> AsyncIterator[ModelPool]:
    """One for all tests of a process, of one child each; it must survive them all."""
    async with a_model_pool() as made:
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def db(url: str) -> AsyncIterator[Database]:
    """A fresh database with our schema, opened in the loop to which the models belong."""
    async with Database(url) as database:
        yield database
