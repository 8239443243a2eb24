"""Every letter that one room sends another.

A letter that only its own room sends stands in that room's `letters.py`.
"""

from dataclasses import dataclass
from typing import ClassVar

from gristmill.ids import TaskId


@dataclass(frozen=True)
class SendCallback:  # documents -> web
    """Tell an address outside that a task is done, and what came of it."""

    kind: ClassVar[str] = "web.callback"
    url: str
    task: TaskId
