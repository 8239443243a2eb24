"""Workers whose parent is killed, at whatever moment of their life: none is left, and none opens a database again."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import psycopg
import pytest
from desk import MILL, PATIENCE, SLOW, wait_until

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


def test_a_worker_that_finishes_its_task_after_its_parent_was_killed_starts_no_database(embedded, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    app = f"{tmp_path}/slow.py:handlers"
    embedded.start()
    supervisor = start_worker(embedded, "--app", app)
    children: list[psutil.Process] = []
    try:
        wait_until(lambda: count_rows(embedded, "worker WHERE state = 'live'"))
        send_slow_task(embedded, app)
        wait_until(lambda: count_rows(embedded, "tasks WHERE status = 'processing'"))
        children = kill_with_children_noted(supervisor)
        wait_until(lambda: count_rows(embedded, "worker WHERE state = 'stopping'"))
        embedded.stop("immediate")
        for _ in range(50):
            assert not embedded.running()
            time.sleep(0.1)
        assert any(one.is_running() for one in children)  # it was there all the time
    finally:
        for one in (supervisor, *children):
            with suppress(psutil.NoSuchProcess):
                one.kill()


def send_slow_task(embedded: Embedded, app: str) -> None:
    environment = {**os.environ, "GRISTMILL_DATA": str(embedded.data)}
    environment.pop("GRISTMILL_DATABASE_URL", None)
    words = ("task", "send", "slow.sleep", '{"seconds": 1000}', "--app", app)
    subprocess.run([sys.executable, "-m", "gristmill", *words], env=environment, check=True, stdout=subprocess.DEVNULL)


def count_rows(embedded: Embedded, what: str) -> int:
    try:
        with psycopg.connect(embedded.url()) as connection:
            found = connection.execute(f"SELECT count(*) FROM {what}").fetchone()  # type: ignore[arg-type]
    except psycopg.Error:  # its tables are not there yet
        return 0
    return found[0] if found else 0


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
