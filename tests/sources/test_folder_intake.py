"""Files that are added one by one, and what the caller is told meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gristmill.db import Database
from gristmill.scopes import GLOBAL
from gristmill.settings import Settings
from gristmill.sources import FileIntake, Reporter, files_at


async def test_a_caller_is_told_how_many_files_there_are_and_the_name_of_each_before_its_turn(
    db: Database, tmp_path: Path
) -> None:
    heard: list[object] = []

    @contextmanager
    def follow_files(total: int) -> Iterator[Callable[[str], None]]:
        heard.append(total)
        yield heard.append
        heard.append("end")

    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(f"# {name}\n")
    intake = FileIntake(db, Settings(), GLOBAL, Reporter(follow_files=follow_files))
    added = await intake.add_files(files_at(tmp_path))
    assert heard == [2, "a.md", "b.md", "end"]
    assert [(one.name, one.status) for one in added] == [("a.md", "added"), ("b.md", "added")]


async def test_the_data_folder_is_left_out_with_a_word(db: Database, tmp_path: Path) -> None:
    warnings: list[str] = []
    (tmp_path / "data").mkdir()
    for name in ("data/ours.md", "theirs.md"):
        (tmp_path / name).write_text("# Plan\n")
    intake = FileIntake(db, Settings(data=tmp_path / "data"), GLOBAL, Reporter(warnings.append))
    assert [one.name for one in await intake.add_files(files_at(tmp_path))] == ["theirs.md"]
    assert warnings == [f"The data folder {tmp_path / 'data'} is left out (1 of the files)."]
