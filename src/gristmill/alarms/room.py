"""The room of alarms: looks at the rules of all rooms every minute, and tells who wants to know."""

from functools import partial

from gristmill.alarms.evaluating import evaluate_alarms
from gristmill.alarms.letters import EvaluateAlarms, TellAlarm
from gristmill.alarms.rules import WATCHES
from gristmill.alarms.telling import tell_alarm
from gristmill.queue import Handler, on
from gristmill.rooms import RecurringLetter, Room, Tools

EVERY_MINUTE = "* * * * *"


def bind_handlers(tools: Tools) -> list[Handler]:
    db, settings = tools.db, tools.settings
    return [
        on(EvaluateAlarms, partial(evaluate_alarms, db=db, settings=settings, rooms=tools.rooms)),
        on(TellAlarm, partial(tell_alarm, db=db, settings=settings)),
    ]


ROOM = Room(
    name="alarms",
    letters=(EvaluateAlarms, TellAlarm),
    handlers=bind_handlers,
    schedules=(RecurringLetter(EvaluateAlarms.kind, EvaluateAlarms(), EVERY_MINUTE),),
    alarms=WATCHES,
)
