"""The rules for what stands below the rooms: the queue and the machine of the database."""

from gristmill.db import Tx, find_machine_troubles
from gristmill.queue import QUEUE_RULES, Thresholds, find_queue_troubles
from gristmill.rooms import Watch
from gristmill.settings import Settings
from gristmill.telemetry import Finding


async def watch_queues(tx: Tx, settings: Settings) -> list[Finding]:
    alarms = settings.alarms
    limits = Thresholds(settings.queue.dead_alert, alarms.queue_depth, alarms.idle, alarms.stall)
    return await find_queue_troubles(tx, limits)


WATCHES = (Watch(QUEUE_RULES, watch_queues), Watch(("disk", "clock"), find_machine_troubles))
