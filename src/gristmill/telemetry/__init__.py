"""What the program reports about itself: events and metrics."""

from gristmill.telemetry.logs import log, set_up_logs, shorten_text
from gristmill.telemetry.metrics import WorkerMetrics, count_extraction

__all__ = ["WorkerMetrics", "count_extraction", "log", "set_up_logs", "shorten_text"]
