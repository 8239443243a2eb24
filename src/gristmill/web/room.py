"""The room of the web: it answers the letters that people send from the API and the console."""

from functools import partial

from gristmill.queue import Handler, RunBulk, on
from gristmill.rooms import Room, Tools
from gristmill.sources import Fetcher
from gristmill.tasks import SendCallback
from gristmill.web.bulk import run_bulk
from gristmill.web.callbacks import send_callback


def bind_handlers(tools: Tools) -> list[Handler]:
    settings = tools.settings
    calling = partial(send_callback, db=tools.db, fetcher=Fetcher(settings.fetch), settings=settings.web)
    return [on(RunBulk, partial(run_bulk, db=tools.db), at_once=1), on(SendCallback, calling)]


ROOM = Room(name="web", letters=(RunBulk, SendCallback), handlers=bind_handlers)
