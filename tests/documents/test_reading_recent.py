"""The file that was opened last: one for all its pages, and one for all formats."""

from pathlib import Path

import pytest

from gristmill.documents import desk
from gristmill.documents.reading import Limits, recent
from gristmill.documents.reading.recent import Recent

TABLE = "id,item,price\n" + "".join(f"{n},Flour of the sort {n},{n}.50\n" for n in range(2_000))


def test_a_process_keeps_one_file_open_whatever_its_format(tmp_path: Path) -> None:
    kept: list[str] = []
    texts, tables = (Recent(lambda path: kept.append(path) or path, kept.remove) for _ in range(2))
    for name in "ab":
        (tmp_path / name).touch()
    texts.get(str(tmp_path / "a"))
    tables.get(str(tmp_path / "b"))
    assert kept == [str(tmp_path / "b")]
    texts.get(str(tmp_path / "b"))
    assert kept == [str(tmp_path / "b")], "the same file in another format is another opening"


def test_pages_are_not_taken_for_slow_because_their_file_takes_long_to_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter(range(10_000))  # every look at it costs a second, and an opening looks twice
    monkeypatch.setattr(recent, "process_time", lambda: next(clock))
    monkeypatch.setattr(desk, "process_time", lambda: 0.0 + recent.Recent.spent)
    told: list[int] = []
    monkeypatch.setattr(desk, "tell", lambda found, now: told.append(len(found.text)))
    path = tmp_path / "stock.csv"
    path.write_text(TABLE)
    desk.read_pages([(str(path), "csv", number) for number in range(1, 6)], Limits(), careful=False)
    assert len(told) == 5
