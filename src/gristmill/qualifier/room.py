"""The room of the qualifier: which handler answers which of its letters, and with which limits."""

from datetime import timedelta
from functools import partial

from gristmill.db import Tx
from gristmill.qualifier.arriving import FindAddresses
from gristmill.qualifier.builtin import BuiltInExecutor
from gristmill.qualifier.deciding_room import DECIDING_ALARMS, DECIDING_LETTERS, bind_deciding, set_up_deciding
from gristmill.qualifier.execution import Execution
from gristmill.qualifier.executor import Executor
from gristmill.qualifier.idle import RequestWatch
from gristmill.qualifier.intake import Intake, Qualify
from gristmill.qualifier.letters import DispatchDue, QualifyItem, RunInBackground, RunItem, SweepItems
from gristmill.qualifier.profiles import find_own_addresses
from gristmill.qualifier.qualification import qualify_many
from gristmill.qualifier.recovering import sweep_items
from gristmill.qualifier.scheduler import dispatch_due
from gristmill.queue import Handler, on, set_queue
from gristmill.rooms import RecurringLetter, Room, Tools
from gristmill.settings import Settings
from gristmill.tasks import DocumentRead

AT_ONCE = 64  # items that one call decides
CALLS = 2  # of these in one worker: one reads while the other writes
EVERY_MINUTE = "* * * * *"
LONGEST = timedelta(hours=6)  # one item: an LLM may be slow, and is waited for
ENGINE_LETTERS = (DocumentRead, QualifyItem, SweepItems, DispatchDue, RunItem, RunInBackground)


def bind_engine(
    tools: Tools, qualify: Qualify, find_own_addresses: FindAddresses, executor: Executor | None = None
) -> list[Handler]:
    """The handlers that take items in, schedule and execute them; who decides, and who executes, is given."""
    db, models, settings = tools.db, tools.models, tools.settings
    llm = models.llm if settings.llm.model else None
    watch = RequestWatch(db, llm.has_urgent_requests if llm else None)
    worker = executor or BuiltInExecutor(db, llm, settings.llm.model)
    execution = Execution(db, worker, watch, settings.qualifier)
    intake = Intake(db, qualify, find_own_addresses)
    return [
        on(DocumentRead, intake.take_documents, batch=AT_ONCE, at_once=CALLS),
        on(QualifyItem, intake.take_items, batch=AT_ONCE, at_once=CALLS),
        on(SweepItems, partial(sweep_items, settings=settings.qualifier), at_once=1),
        on(DispatchDue, partial(dispatch_due, settings=settings.qualifier), at_once=1),
        on(RunItem, execution.run, timeout=LONGEST, at_once=settings.qualifier.foreground_at_once),
        on(RunInBackground, execution.run, timeout=LONGEST, at_once=settings.qualifier.background_at_once),
    ]


async def set_up_queues(tx: Tx, settings: Settings) -> None:
    """Items are never given up because the world is busy: they are tried again, from 5 s to 5 min apart."""
    patient = {"max_attempts": None, "retry_base": timedelta(seconds=5), "retry_cap": timedelta(minutes=5)}
    await set_queue(tx, "qualify", **patient)
    for queue in ("execution", "background"):
        await set_queue(tx, queue, retry_base=timedelta(seconds=5), breaker=None)


def bind_handlers(tools: Tools, executor: Executor | None = None) -> list[Handler]:
    """All handlers; without another executor, the built-in one works on items."""
    return [*bind_engine(tools, partial(qualify_many, tools), find_own_addresses, executor), *bind_deciding(tools)]


async def prepare(tx: Tx, settings: Settings) -> None:
    await set_up_queues(tx, settings)
    await set_up_deciding(tx, settings)


ROOM = Room(
    name="qualifier",
    letters=(*ENGINE_LETTERS, *DECIDING_LETTERS),
    handlers=bind_handlers,
    prepare=prepare,
    schedules=(
        RecurringLetter(SweepItems.kind, SweepItems(), EVERY_MINUTE),
        RecurringLetter(DispatchDue.kind, DispatchDue(), EVERY_MINUTE),
    ),
    alarms=DECIDING_ALARMS,
)
