"""The file that was opened last: one for all its pages, and one for all formats."""

from pathlib import Path

import pytest

from gristmill.documents import parsers
from gristmill.documents.reading import Limits, open_files
from gristmill.documents.reading.open_files import OpenFile

TABLE = "id,item,price\n" + "".join(f"{n},Flour of the sort {n},{n}.50\n" for n in range(2_000))


def test_a_process_keeps_one_file_open_whatever_its_format(tmp_path: Path) -> None:
    kept: list[str] = []
    texts, tables = (OpenFile(lambda path: kept.append(path) or path, kept.remove) for _ in range(2))
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
    monkeypatch.setattr(open_files, "process_time", lambda: next(clock))
    monkeypatch.setattr(parsers, "process_time", lambda: 0.0 + open_files.OpenFile.spent)
    told: list[int] = []
    monkeypatch.setattr(parsers, "tell", lambda found, now: told.append(len(found.text)))
    path = tmp_path / "stock.csv"
    path.write_text(TABLE)
    parsers.read_pages([(str(path), "csv", number) for number in range(1, 6)], Limits(), careful=False)
    assert len(told) == 5
