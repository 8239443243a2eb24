"""`gristmill up`, as a process: what Ctrl-C does to it, and what is left afterwards."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from desk import EXAMPLES, PATIENCE, wait_until, within
from PIL import Image

from gristmill.cli.up import DiskNotice

AT_ONCE = 10.0  # seconds that a second Ctrl-C may take on a busy machine; the first waits up to 20 for a page
SCANS = ("letter-harrow-trust.tiff", "receipt-photo.jpg")
HEIGHT = 440  # pixels: ten lines of a scan, which take a second to read; a whole page takes three

Start = Callable[..., psutil.Popen]


def test_a_full_disk_is_told_once_and_so_is_its_end() -> None:
    disk = DiskNotice()
    told = [disk.note(one) for one in (None, "full, 3 MB", "full, 2 MB", None, None, "full, 1 MB")]
    assert told == [None, "full, 3 MB", None, "There is space on the disk again: this goes on.", None, "full, 1 MB"]


@pytest.fixture
def inbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with pages that can only be read from their pictures, which takes a while."""
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path / "data"))
    folder = tmp_path / "inbox"
    folder.mkdir()
    for name in SCANS:
        with Image.open(EXAMPLES / "inbox" / name) as scan:
            scan.crop((0, 0, scan.width, HEIGHT)).save(folder / name)
    return folder


@pytest.fixture
def start_up(url: str) -> Iterator[Start]:
    """Start `gristmill up`; whatever is left of it at the end is killed."""
    started: list[psutil.Popen] = []

    def start(*words: object) -> psutil.Popen:
        command = [sys.executable, "-m", "gristmill", "up", *map(str, words)]
        # one child for each model: a second one would load the same model for the other of two pages
        environment = {**os.environ, "GRISTMILL_DATABASE_URL": url, "GRISTMILL_DOCUMENTS_PROCESSES": "1"}
        process = psutil.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.is_running():
            process.kill()
        process.communicate()


RUNNING_SCANS = "SELECT count(*) FROM tasks WHERE queue = 'ocr' AND status = 'processing'"


def count_running_scans(url: str) -> int:
    return within(url, lambda tx: tx.value(RUNNING_SCANS))


def interrupt_while_reading(process: psutil.Popen, url: str) -> list[psutil.Process]:
    """Press Ctrl-C as soon as a page is read; the processes that were at work."""
    wait_until(lambda: count_running_scans(url))
    workers = process.children(recursive=True)
    process.send_signal(signal.SIGINT)
    return workers


def read_line_with(process: psutil.Popen, words: str) -> str:
    return next(line for line in process.stderr if words in line)


def check_everything_is_read_once(start_up: Start, inbox: Path, url: str) -> None:
    again = start_up(inbox, "--once")
    _, err = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, err
    read = (
        "SELECT p.document, p.number FROM page p JOIN document d ON d.id = p.document WHERE d.opening > 0 ORDER BY 1, 2"
    )
    pages = within(url, lambda tx: tx.all(read))  # not those of the notes that the qualifier writes
    assert [tuple(page) for page in pages] == [(1, 1), (2, 1)]
    open_or_dead = "SELECT count(*) FROM tasks WHERE kind = 'ocr.read' AND status <> 'completed'"
    assert within(url, lambda tx: tx.value(open_or_dead)) == 0


@pytest.mark.parametrize("once", [[], ["--once"]])
def test_the_first_ctrl_c_says_what_is_finished_and_then_ends(start_up, inbox, url, once, monkeypatch):
    monkeypatch.setenv("GRISTMILL_QUEUE_STOP", "2s")
    process = start_up(inbox, *once)
    workers = interrupt_while_reading(process, url)
    told = read_line_with(process, "Finishing")
    assert ("of ocr" in told, "for at most 2 s" in told) == (True, True)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, err.splitlines()[-1]) == (130, "Stopped; the workers hold no task any more.")
    assert count_running_scans(url) == 0
    assert not any(one.is_running() for one in workers)


def test_the_second_ctrl_c_ends_at_once_and_nothing_is_lost_or_done_twice(start_up, inbox, url):
    process = start_up(inbox)
    workers = interrupt_while_reading(process, url)
    read_line_with(process, "Finishing")
    pressed = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert time.monotonic() - pressed < AT_ONCE
    assert (process.returncode, "Stopped at once" in err) == (130, True)
    wait_until(lambda: not any(one.is_running() for one in workers))
    check_everything_is_read_once(start_up, inbox, url)


def test_sigterm_ends_a_serving_up_in_good_order(start_up, inbox, url):
    process = start_up(inbox)
    read_line_with(process, "until Ctrl-C")
    process.terminate()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


@pytest.mark.parametrize("which", [signal.SIGKILL, signal.SIGTERM])
def test_workers_that_are_ended_by_somebody_are_started_again(start_up, inbox, url, which):
    process = start_up(inbox)
    read_line_with(process, "until Ctrl-C")
    wait_until(lambda: find_supervisors(process))
    (first,) = find_supervisors(process)
    first.send_signal(which)
    assert "started again" in read_line_with(process, "ended by themselves")
    wait_until(lambda: [one for one in find_supervisors(process) if one.pid != first.pid])
    assert process.is_running()
    process.terminate()
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


def find_supervisors(process: psutil.Popen) -> list[psutil.Process]:
    """The process that keeps the workers, just below `up`."""
    return [one for one in process.children() if "worker" in one.cmdline()]


def test_an_embedded_database_that_goes_on_is_mentioned_with_the_command_that_stops_it(speak, embedded, monkeypatch):
    monkeypatch.delenv("GRISTMILL_DATABASE_URL", raising=False)
    monkeypatch.setenv("GRISTMILL_DATA", str(embedded.data))
    (embedded.data.parent / "nothing").mkdir()
    said = speak("up", embedded.data.parent / "nothing", "--once")
    assert (said.code, embedded.running()) == (1, True)
    assert "PostgreSQL keeps running for the next command; gristmill db stop stops it.\n" in said.err
