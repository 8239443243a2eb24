"""The durable task queue: send letters, let workers answer them, ask why."""

from gristmill.queue.context import current
from gristmill.queue.groups import open_group, open_groups, seal
from gristmill.queue.handlers import Handler, Handlers, bind, on
from gristmill.queue.letters import Envelope, Letter, Unique, decode
from gristmill.queue.limiter import Limit, Limiters, LimiterStatus, list_limiters, set_limit
from gristmill.queue.operate import dead
from gristmill.queue.operate.alarms import QUEUE_RULES, Thresholds, find_queue_troubles
from gristmill.queue.operate.bulk import (
    Action,
    Bulk,
    BulkPreview,
    RunBulk,
    find_runner,
    get_bulk,
    list_bulks,
    preview_bulk,
    run_portion,
    start_bulk,
    stop_bulk,
    undo_bulk,
)
from gristmill.queue.operate.cancel import Cancelling, cancel
from gristmill.queue.operate.checks import examine_queues, explain_standstill
from gristmill.queue.operate.counts import (
    QueueCounts,
    StatusCounts,
    add_up,
    count_tasks,
    find_oldest_pending,
    own_scopes,
)
from gristmill.queue.operate.line import InLine, choose_positions, find_place, list_line, put_in_line
from gristmill.queue.operate.lookup import (
    STATUSES,
    GroupProgress,
    HistoryEvent,
    Task,
    get_task,
    group_progress,
    history,
)
from gristmill.queue.operate.order import run_now, set_foreground, set_position, set_priority
from gristmill.queue.operate.queues import QueueReport, list_queue_names, list_queues, pause, resume, set_queue
from gristmill.queue.operate.queues import columns_of as check_settings
from gristmill.queue.operate.remedies import Remedy, find_remedies
from gristmill.queue.operate.revive import RetryRefusal, Revived
from gristmill.queue.operate.revive import retry as retry_tasks
from gristmill.queue.operate.search import Spot, TaskFilter, TasksFound, find_tasks, load_tasks, read_clock
from gristmill.queue.operate.trends import Spark, TrendPoint, read_sparks, read_trend
from gristmill.queue.operate.why import Why, why
from gristmill.queue.operate.workers import WorkerReport, list_workers
from gristmill.queue.outcome import Answer, Done, JointWrite, Skip, Snooze
from gristmill.queue.rates import Rate
from gristmill.queue.send import send, send_many
from gristmill.queue.trees import SUBJECT, Branch, Follower, Leaf, Planted, Seed, Tree, plant_trees
from gristmill.queue.upkeep.cron import check_zone
from gristmill.queue.upkeep.cron import parse as check_cron
from gristmill.queue.upkeep.janitor import Cleaned, clean, forget_owners
from gristmill.queue.upkeep.runs import ScheduleRun, list_runs
from gristmill.queue.upkeep.schedules import (
    Schedule,
    add_schedule,
    enable_schedule,
    list_schedules,
    remove_schedule,
    run_schedule,
)
from gristmill.queue.worker.bounded import BoundedRun, run_bounded
from gristmill.queue.worker.health import HealthPort
from gristmill.queue.worker.heartbeat import STUCK
from gristmill.queue.worker.supervisor import Supervisor
from gristmill.queue.worker.worker import Worker

__all__ = [
    "QUEUE_RULES",
    "STATUSES",
    "STUCK",
    "SUBJECT",
    "Action",
    "Answer",
    "BoundedRun",
    "Branch",
    "Bulk",
    "BulkPreview",
    "Cancelling",
    "Cleaned",
    "Done",
    "Envelope",
    "Follower",
    "GroupProgress",
    "Handler",
    "Handlers",
    "HealthPort",
    "HistoryEvent",
    "InLine",
    "JointWrite",
    "Leaf",
    "Letter",
    "Limit",
    "LimiterStatus",
    "Limiters",
    "Planted",
    "QueueCounts",
    "QueueReport",
    "Rate",
    "Remedy",
    "RetryRefusal",
    "Revived",
    "RunBulk",
    "Schedule",
    "ScheduleRun",
    "Seed",
    "Skip",
    "Snooze",
    "Spark",
    "Spot",
    "StatusCounts",
    "Supervisor",
    "Task",
    "TaskFilter",
    "TasksFound",
    "Thresholds",
    "Tree",
    "TrendPoint",
    "Unique",
    "Why",
    "Worker",
    "WorkerReport",
    "add_schedule",
    "add_up",
    "bind",
    "cancel",
    "check_cron",
    "check_settings",
    "check_zone",
    "choose_positions",
    "clean",
    "count_tasks",
    "current",
    "dead",
    "decode",
    "enable_schedule",
    "examine_queues",
    "explain_standstill",
    "find_oldest_pending",
    "find_place",
    "find_queue_troubles",
    "find_remedies",
    "find_runner",
    "find_tasks",
    "forget_owners",
    "get_bulk",
    "get_task",
    "group_progress",
    "history",
    "list_bulks",
    "list_limiters",
    "list_line",
    "list_queue_names",
    "list_queues",
    "list_runs",
    "list_schedules",
    "list_workers",
    "load_tasks",
    "on",
    "open_group",
    "open_groups",
    "own_scopes",
    "pause",
    "plant_trees",
    "preview_bulk",
    "put_in_line",
    "read_clock",
    "read_sparks",
    "read_trend",
    "remove_schedule",
    "resume",
    "retry_tasks",
    "run_bounded",
    "run_now",
    "run_portion",
    "run_schedule",
    "seal",
    "send",
    "send_many",
    "set_foreground",
    "set_limit",
    "set_position",
    "set_priority",
    "set_queue",
    "start_bulk",
    "stop_bulk",
    "undo_bulk",
    "why",
]
