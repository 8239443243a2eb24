"""Workers whose parent is killed, at whatever moment of their life: none is left, and none opens a database again."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from desk import MILL, PATIENCE, wait_until

from gristmill.db.embedded import Embedded
from gristmill.processes import find_gone_processes, process_key

SOON_AFTER = [1.5, 1.2, 1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.0]  # seconds from the first child to the kill


def start_worker(embedded: Embedded, *words: str) -> psutil.Popen:
    environment = {**os.environ, "GRISTMILL_DATA": str(embedded.data)}
    environment.pop("GRISTMILL_DATABASE_URL", None)
    command = [sys.executable, "-m", "gristmill", "worker", "--app", MILL, *words]
    return psutil.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def find_workers(parent: psutil.Process) -> list[psutil.Process]:
    """The processes below this one that work, not the database that one of them has started."""
    return [one for one in parent.children(recursive=True) if "gristmill" in one.cmdline()]


def kill_with_children_noted(parent: psutil.Popen) -> list[psutil.Process]:
    """Kill a process; its children, none of which can have been started unseen."""
    parent.send_signal(signal.SIGSTOP)
    children = find_workers(parent)
    parent.kill()
    parent.wait()
    return children


def test_no_child_is_left_whenever_its_supervisor_is_killed_and_a_stopped_database_stays_so(embedded):
    embedded.start()
    left: list[psutil.Process] = []
    for seconds in SOON_AFTER:
        supervisor = start_worker(embedded, "--processes", "2")
        wait_until(lambda supervisor=supervisor: find_workers(supervisor))
        time.sleep(seconds)
        left += kill_with_children_noted(supervisor)
    embedded.stop()  # while the youngest children would still open it
    assert len(left) >= len(SOON_AFTER)
    wait_until(lambda: not any(one.is_running() for one in left))
    assert not embedded.running()


@pytest.mark.parametrize("share", [[], ["--child"]])
def test_a_worker_whose_parent_is_gone_before_it_begins_opens_nothing(embedded, share):
    parent = subprocess.run(
        [sys.executable, "-c", "from gristmill.processes import process_key; print(process_key())"],
        capture_output=True,
        text=True,
        check=True,
    )
    key = parent.stdout.strip()
    assert find_gone_processes([key, process_key()]) == [key]
    assert start_worker(embedded, "--under", key, *share).wait(PATIENCE) == 1
    assert not embedded.data.exists()
