"""The durable task queue: send letters, let workers answer them, ask why."""

from gristmill.queue.context import current
from gristmill.queue.groups import open_group, open_groups, seal
from gristmill.queue.handlers import Handler, Handlers, bind, on
from gristmill.queue.letters import Envelope, Letter, Unique, decode
from gristmill.queue.limiter import Limit, Limiters, LimiterStatus, list_limiters, set_limit
from gristmill.queue.operate import dead
from gristmill.queue.operate.cancel import Cancelling, cancel
from gristmill.queue.operate.checks import examine_queues, explain_standstill
from gristmill.queue.operate.lookup import (
    STATUSES,
    Event,
    GroupProgress,
    Task,
    get_task,
    group_progress,
    history,
    list_tasks,
)
from gristmill.queue.operate.order import set_foreground, set_position, set_priority
from gristmill.queue.operate.queues import QueueReport, list_queues, pause, resume, set_queue
from gristmill.queue.operate.queues import columns_of as check_settings
from gristmill.queue.operate.revive import Refusal, Revived
from gristmill.queue.operate.revive import retry as retry_tasks
from gristmill.queue.operate.why import Why, why
from gristmill.queue.outcome import Answer, Done, Skip, Snooze
from gristmill.queue.rates import Rate
from gristmill.queue.send import send, send_many
from gristmill.queue.upkeep.cron import check_zone
from gristmill.queue.upkeep.cron import parse as check_cron
from gristmill.queue.upkeep.janitor import forget_owners
from gristmill.queue.upkeep.schedules import (
    Schedule,
    add_schedule,
    enable_schedule,
    list_schedules,
    remove_schedule,
    run_schedule,
)
from gristmill.queue.worker.health import HealthPort
from gristmill.queue.worker.heartbeat import STUCK
from gristmill.queue.worker.supervisor import Supervisor
from gristmill.queue.worker.worker import Worker

__all__ = [
    "STATUSES",
    "STUCK",
    "Answer",
    "Cancelling",
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
    "QueueReport",
    "Rate",
    "Refusal",
    "Revived",
    "Schedule",
    "Skip",
    "Snooze",
    "Supervisor",
    "Task",
    "Unique",
    "Why",
    "Worker",
    "add_schedule",
    "bind",
    "cancel",
    "check_cron",
    "check_settings",
    "check_zone",
    "current",
    "dead",
    "decode",
    "enable_schedule",
    "examine_queues",
    "explain_standstill",
    "forget_owners",
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
    "why",
]
