"""What the program tells about itself: events, metrics, the judgements of the doctor and the findings of alarms."""

from gristmill.telemetry.checks import Check
from gristmill.telemetry.findings import MACHINE, Finding, Level, find_by_check
from gristmill.telemetry.logs import log, set_up_logs, shorten_text
from gristmill.telemetry.metrics import WorkerMetrics, count_extraction

__all__ = [
    "MACHINE",
    "Check",
    "Finding",
    "Level",
    "WorkerMetrics",
    "count_extraction",
    "find_by_check",
    "log",
    "set_up_logs",
    "shorten_text",
]
