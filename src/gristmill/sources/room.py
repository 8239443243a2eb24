"""The room of sources: which handler answers which of its letters, and with which limits."""

from datetime import timedelta

from gristmill.db import Tx
from gristmill.documents import make_limits
from gristmill.queue import Handler, on
from gristmill.rooms import RecurringLetter, Room, Tools, Watch
from gristmill.settings import Settings
from gristmill.sources.clearing import FOLDER, clear_folders
from gristmill.sources.indexer import Indexer
from gristmill.sources.kinds import KINDS
from gristmill.sources.letters import (
    IndexItem,
    ListenToSources,
    ListSource,
    PollSource,
    RemoveItem,
    SourceDue,
    WatchSources,
)
from gristmill.sources.listing import Lister
from gristmill.sources.opening import Opener
from gristmill.sources.poller import Poller, answer_due
from gristmill.sources.register import apply_declared
from gristmill.sources.status import RULES, find_stopped_sources
from gristmill.sources.watching import Listener, answer_watch

ITEMS_AT_ONCE = 256
POLLS_AT_ONCE = 4  # of one worker: a poll mostly waits for the other side
LONGEST = timedelta(hours=2)  # a listing of a million ids


def bind_handlers(tools: Tools) -> list[Handler]:
    db, settings = tools.db, tools.settings
    opener = Opener(db, KINDS, settings.data / FOLDER, settings.documents.max_bytes)
    poller = Poller(opener, settings.sources.turn)
    lister = Lister(poller, settings.sources.most_gone)
    seconds = settings.documents.timeout.total_seconds()
    indexer = Indexer(
        db,
        KINDS,
        tools.models.reading_processes,
        seconds,
        settings.documents.memory,
        make_limits(settings.documents),
        settings.fetch,
    )
    return [
        on(SourceDue, answer_due),
        on(PollSource, poller.poll, timeout=LONGEST, at_once=POLLS_AT_ONCE),
        on(ListSource, lister.list, timeout=LONGEST, at_once=1),
        on(WatchSources, answer_watch),
        on(ListenToSources, Listener(opener).listen, timeout=LONGEST, at_once=1),
        on(IndexItem, indexer.index, batch=ITEMS_AT_ONCE, timeout=LONGEST, at_once=2),
        on(RemoveItem, indexer.remove),
    ]


async def prepare(tx: Tx, settings: Settings) -> None:
    """When a worker starts on a machine: its settings name sources, and its disk may hold what others left."""
    await apply_declared(tx, settings)
    await clear_folders(tx, settings)


ROOM = Room(
    name="sources",
    letters=(SourceDue, PollSource, ListSource, WatchSources, ListenToSources, IndexItem, RemoveItem),
    schedules=(RecurringLetter("sources.watch", WatchSources(), "*/10 * * * *"),),
    handlers=bind_handlers,
    prepare=prepare,
    alarms=(Watch(RULES, find_stopped_sources),),
)
