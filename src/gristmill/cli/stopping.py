"""How workers stop: what is said about it, how long it may take, and what Ctrl-C means to a command that has some."""

import asyncio
import signal
from collections.abc import Mapping
from datetime import timedelta

from gristmill.settings import QueueSettings
from gristmill.wording import format_count

TIDYING = 25.0  # seconds beyond the setting `stop` in which a worker gives back what it holds
PATIENCE = 5.0  # more seconds that the process which started it waits
STOPPED = "Stopped; the workers hold no task any more."
KILLED = "Stopped at once; what was running is taken back by the next worker, and tried again."


def worker_grace(settings: QueueSettings) -> float:
    """Seconds in which a worker has ended after it was asked to."""
    return settings.stop.total_seconds() + TIDYING


def supervisor_grace(settings: QueueSettings) -> float:
    """Seconds after which a supervisor kills the workers that have not ended."""
    return worker_grace(settings) + PATIENCE


class Interruption:
    """Ctrl-C or SIGTERM for a command with workers: the first cancels the command, the second is for its clean-up.

    The workers have a session of their own, so that a Ctrl-C reaches the command alone, which lets them stop.
    """

    def __init__(self) -> None:
        self.first: signal.Signals | None = None
        self.again = asyncio.Event()
        self._task = asyncio.current_task()

    def listen(self, which: signal.Signals) -> None:
        asyncio.get_running_loop().add_signal_handler(which, self._take, which)

    def _take(self, which: signal.Signals) -> None:
        if self.first is not None:
            self.again.set()
            return
        self.first = which
        assert self._task is not None
        self._task.cancel()


def describe_finishing(running: Mapping[str, int] | None, most: timedelta) -> str:
    """The sentence after the first Ctrl-C; `running` counts the tasks of each queue, None if nobody knows them."""
    if running is None:
        return "Stopping. Ctrl-C again stops at once."
    count = sum(running.values())
    if not count:
        return "Stopping: no task is running."
    queues = ", ".join(f"{n:,} of {queue}" for queue, n in running.items() if n)
    return (
        f"Finishing {format_count(count, 'task')} ({queues}) for at most {most.total_seconds():g} s; "
        "what is not done by then is given back. Ctrl-C again stops at once."
    )
