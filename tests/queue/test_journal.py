"""What a worker had begun can be read after it died, and nothing stays behind for ever."""

import os
from pathlib import Path

import pytest

from gristmill.ids import TaskId
from gristmill.queue import journal
from gristmill.queue.claim import Claim
from gristmill.queue.journal import Journal, read_begun, remove_journal


def claim(task: int, lease: int = 1) -> Claim:
    return Claim(TaskId(task), task, 1, "mill", 1, "mill.grind", "{}", None, True, lease=lease)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(journal, "journal_folder", lambda: tmp_path)
    return tmp_path


def test_what_has_begun_and_not_ended_can_be_read() -> None:
    mine = Journal()
    one, two = claim(1), claim(2)
    mine.begin(one)
    mine.begin(two)
    mine.end(one)
    mine.end(one)
    assert read_begun(mine.name) == {2}
    mine.close(leave=True)
    assert read_begun(mine.name) == {2}
    mine.end(two)  # a handler that would not stop; nobody listens any more
    remove_journal(mine.name)
    assert read_begun(mine.name) is None


def test_the_end_of_an_old_claim_does_not_strike_out_a_new_start_of_the_same_task() -> None:
    mine = Journal()
    first, again = claim(1, lease=1), claim(1, lease=2)
    mine.begin(first)
    mine.begin(again)
    mine.end(first)
    assert read_begun(mine.name) == {1}
    mine.end(again)
    assert read_begun(mine.name) == frozenset()
    mine.close()
    assert read_begun(mine.name) is None


def test_old_notes_of_dead_processes_are_swept_away(own_folder: Path) -> None:
    dead, odd, living, fresh = (own_folder / name for name in ("4194399-a", "b", f"{os.getpid()}-c", "4194399-d"))
    for path in (dead, odd, living, fresh):
        path.touch()
    for path in (dead, odd, living):
        os.utime(path, (0, 0))
    Journal().close()
    assert set(own_folder.iterdir()) == {living, fresh}
