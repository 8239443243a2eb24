"""Lets a process stop when the process that started it is gone, whenever that happens."""

import os
import threading
from collections.abc import Callable

from gristmill.processes.presence import find_gone_processes, wait_for_end

ORPHANED = 1  # exit code of a process that ends because its parent is gone


class ParentWatch:
    """Watches the parent from a thread of its own, from the first moment on.

    The parent itself says who it is (`process_key`): a child that asks for its parent may be told another process,
    because its own parent has died before the question. Until somebody says how to stop in good order, this process
    just ends: it holds nothing yet, and it must not open, or even start, a database for nobody.
    """

    def __init__(self, parent: str) -> None:
        if find_gone_processes([parent]):
            os._exit(ORPHANED)
        self._lock = threading.Lock()
        self._stop: Callable[[], object] | None = None
        threading.Thread(target=self._wait, args=[parent], name="parent watch", daemon=True).start()

    def stop_by(self, stop: Callable[[], object]) -> None:
        """From now on, call `stop` in the thread of the watch when the parent is gone."""
        with self._lock:
            self._stop = stop

    def _wait(self, parent: str) -> None:
        wait_for_end(parent)
        with self._lock:
            if self._stop is None:
                os._exit(ORPHANED)
            self._stop()
