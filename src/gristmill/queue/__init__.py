"""The durable task queue: send letters, let workers answer them, ask why."""

from gristmill.queue import dead
from gristmill.queue.cancel import Cancelling, cancel
from gristmill.queue.child import tell
from gristmill.queue.context import current
from gristmill.queue.cron import check_zone
from gristmill.queue.cron import parse as check_cron
from gristmill.queue.forks import drop_signals_in_copies
from gristmill.queue.handlers import Handler, Handlers, bound, on
from gristmill.queue.health import HealthPort
from gristmill.queue.heartbeat import STUCK
from gristmill.queue.janitor import forget
from gristmill.queue.letters import Envelope, Letter, Unique, decode
from gristmill.queue.limiter import Limit, Limiters, LimiterStatus, list_limiters, set_limit
from gristmill.queue.lookup import STATUSES, Event, GroupProgress, Task, get_task, group_progress, history, list_tasks
from gristmill.queue.order import set_foreground, set_position, set_priority
from gristmill.queue.outcome import Answer, Done, Skip, Snooze
from gristmill.queue.processes import Crashed, OutOfMemory, ProcessPool, TimedOut
from gristmill.queue.queues import QueueReport, list_queues, pause, resume, set_queue
from gristmill.queue.queues import columns_of as check_settings
from gristmill.queue.rates import Rate
from gristmill.queue.revive import Refusal, Revived
from gristmill.queue.revive import retry as retry_tasks
from gristmill.queue.schedules import (
    Schedule,
    add_schedule,
    enable_schedule,
    list_schedules,
    remove_schedule,
    run_schedule,
)
from gristmill.queue.send import open_group, open_groups, seal, send, send_many
from gristmill.queue.supervisor import Supervisor
from gristmill.queue.why import Why, why
from gristmill.queue.worker import Worker

__all__ = [
    "STATUSES",
    "STUCK",
    "Answer",
    "Cancelling",
    "Crashed",
    "Done",
    "Envelope",
    "Event",
    "GroupProgress",
    "Handler",
    "Handlers",
    "HealthPort",
    "Letter",
    "Limit",
    "LimiterStatus",
    "Limiters",
    "OutOfMemory",
    "ProcessPool",
    "QueueReport",
    "Rate",
    "Refusal",
    "Revived",
    "Schedule",
    "Skip",
    "Snooze",
    "Supervisor",
    "Task",
    "TimedOut",
    "Unique",
    "Why",
    "Worker",
    "add_schedule",
    "bound",
    "cancel",
    "check_cron",
    "check_settings",
    "check_zone",
    "current",
    "dead",
    "decode",
    "drop_signals_in_copies",
    "enable_schedule",
    "forget",
    "get_task",
    "group_progress",
    "history",
    "list_limiters",
    "list_queues",
    "list_schedules",
    "list_tasks",
    "on",
    "open_group",
    "open_groups",
    "pause",
    "remove_schedule",
    "resume",
    "retry_tasks",
    "run_schedule",
    "seal",
    "send",
    "send_many",
    "set_foreground",
    "set_limit",
    "set_position",
    "set_priority",
    "set_queue",
    "tell",
    "why",
]
