"""The composition root: the list of rooms, and how their handlers are opened."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from gristmill.agents.executor import AgentExecutor
from gristmill.agents.room import ROOM as AGENTS
from gristmill.alarms.room import ROOM as ALARMS
from gristmill.db import Database
from gristmill.documents.room import ROOM as DOCUMENTS
from gristmill.knowledge.room import ROOM as KNOWLEDGE
from gristmill.models import ModelPool
from gristmill.qualifier.room import ROOM as QUALIFIER_ALONE
from gristmill.qualifier.room import bind_handlers as bind_items
from gristmill.queue import Handler, Handlers
from gristmill.records.room import ROOM as RECORDS
from gristmill.rooms import Room, Tools, bind_rooms, prepare_rooms
from gristmill.settings import Settings
from gristmill.sources.link.room import ROOM as LINKS
from gristmill.sources.room import ROOM as SOURCES
from gristmill.web.room import ROOM as WEB


def bind_qualifier(tools: Tools) -> Sequence[Handler]:
    """Agents work on items where a model is configured; the qualifier itself does where none is."""
    return bind_items(tools, AgentExecutor(tools) if tools.settings.llm.model else None)


QUALIFIER = replace(QUALIFIER_ALONE, handlers=bind_qualifier)
ROOMS: Sequence[Room] = (DOCUMENTS, KNOWLEDGE, SOURCES, LINKS, RECORDS, QUALIFIER, AGENTS, WEB, ALARMS)


@asynccontextmanager
async def handlers(db: Database, settings: Settings, rooms: Sequence[Room] = ROOMS) -> AsyncGenerator[Handlers]:
    """The handlers of all rooms; the models that they work with are closed at the end."""
    async with ModelPool(settings) as models:
        yield bind_rooms(rooms, Tools(db, settings, models, rooms))


async def prepare(db: Database, settings: Settings, handlers: Handlers, rooms: Sequence[Room] = ROOMS) -> None:
    """Called once before workers with these handlers begin: prepares the rooms whose letters they answer."""
    await prepare_rooms(rooms, db, settings, handlers)
