"""What the program tells about itself: events, metrics and the judgements of the doctor."""

from gristmill.telemetry.checks import Check
from gristmill.telemetry.logs import log, set_up_logs, shorten_text
from gristmill.telemetry.metrics import WorkerMetrics, count_extraction

__all__ = ["Check", "WorkerMetrics", "count_extraction", "log", "set_up_logs", "shorten_text"]
