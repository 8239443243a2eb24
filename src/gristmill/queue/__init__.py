"""The durable task queue: send letters, let workers answer them, ask why."""

from gristmill.queue.context import current
from gristmill.queue.handlers import Handler, Handlers, bound, on
from gristmill.queue.letters import Envelope, Letter, Unique
from gristmill.queue.outcome import Done, Skip, Snooze
from gristmill.queue.send import open_group, seal, send, send_many
from gristmill.queue.worker import Worker

__all__ = [
    "Done",
    "Envelope",
    "Handler",
    "Handlers",
    "Letter",
    "Skip",
    "Snooze",
    "Unique",
    "Worker",
    "bound",
    "current",
    "on",
    "open_group",
    "seal",
    "send",
    "send_many",
]
