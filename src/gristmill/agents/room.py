"""The room of agents: carries runs, and tidies up behind them."""

from datetime import timedelta
from functools import partial

from gristmill.agents.checks import check_model
from gristmill.agents.letters import RunAgent, TidyRuns
from gristmill.agents.orchestrating import orchestrate
from gristmill.agents.running import RunCarrier
from gristmill.agents.upkeep import tidy_runs
from gristmill.qualifier import RequestWatch
from gristmill.queue import Handler, on
from gristmill.rooms import RecurringLetter, Room, Tools

LONGEST = timedelta(hours=12)  # of a run without an answer of a person in between
AT_ONCE = 8  # of one worker: a run mostly waits for a model
EVERY_MINUTE = "* * * * *"


def bind_handlers(tools: Tools) -> list[Handler]:
    llm = tools.models.llm if tools.settings.llm.model else None
    watch = RequestWatch(tools.db, llm.has_urgent_requests if llm else None)
    carrier = RunCarrier(tools, orchestrate, watch=watch)
    return [
        on(RunAgent, carrier.carry, timeout=LONGEST, at_once=AT_ONCE),
        on(TidyRuns, partial(tidy_runs, db=tools.db, settings=tools.settings, embedders=tools.models.embedder)),
    ]


ROOM = Room(
    name="agents",
    letters=(RunAgent, TidyRuns),
    handlers=bind_handlers,
    schedules=(RecurringLetter(TidyRuns.kind, TidyRuns(), EVERY_MINUTE),),
    checks=(check_model,),
)
