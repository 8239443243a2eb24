"""What the program tells about itself: events and metrics."""

from gristmill.telemetry.logs import log, set_up_logs, shortened
from gristmill.telemetry.metrics import WorkerMetrics

__all__ = ["WorkerMetrics", "log", "set_up_logs", "shortened"]
