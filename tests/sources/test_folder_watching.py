"""A folder that is watched: what appears or changes in it is added, whatever happens to the folder meanwhile."""

import asyncio
import os
import pwd
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gristmill.cli.grinding import follow
from gristmill.cli.session import Session
from gristmill.db import Database, Embedded, open_database, pool
from gristmill.documents import Taken, remove
from gristmill.ids import DocumentId
from gristmill.scopes import GLOBAL
from gristmill.settings import Settings
from gristmill.sources import FileIntake, Reporter, watch_folder
from gristmill.sources.folder import watching


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files count as written after a tenth of a second: nobody writes slowly here."""
    monkeypatch.setattr(watching, "QUIET", 100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    return inbox


def watch(
    db: Database, folder: Path, *, stop: asyncio.Event | None = None, warnings: list[str] | None = None
) -> AsyncGenerator[Sequence[Taken]]:
    reporter = Reporter() if warnings is None else Reporter(warnings.append)
    return watch_folder(FileIntake(db, Settings(), GLOBAL, reporter, patient=True), folder, stop=stop)


async def test_a_folder_that_goes_away_while_it_is_watched_is_watched_again_when_it_is_back(db: Database, folder: Path):
    stop, gone = asyncio.Event(), asyncio.Event()
    (folder / "plan.md").write_text("# Plan\n")
    reporter = Reporter(lambda said: gone.set() if "was removed" in said else None)
    seen = watch_folder(FileIntake(db, Settings(), GLOBAL, reporter, patient=True), folder, stop=stop)
    async with asyncio.timeout(60):
        assert [one.name for one in await anext(seen)] == ["plan.md"]
        back = asyncio.create_task(anext(seen))
        shutil.rmtree(folder)
        await gone.wait()
        os.mkdir(folder)
        (folder / "again.md").write_text("# Again\n")
        while [one.name for one in await back] != ["again.md"]:  # the empty folder may be looked at first
            back = asyncio.create_task(anext(seen))
    stop.set()
    await seen.aclose()


async def test_what_is_left_out_later_is_left_out_at_the_start_too(db: Database, folder: Path):
    watched = folder / "node_modules" / "docs"  # what lies above the folder that is watched does not matter
    (watched / "node_modules").mkdir(parents=True)
    for name in ("a.pdf.crdownload", "draft.md~", "node_modules/c.txt", "plan.md"):
        (watched / name).write_text("# Plan\n")
    warnings: list[str] = []
    seen = watch(db, watched, warnings=warnings)
    async with asyncio.timeout(60):
        assert [one.name for one in await anext(seen)] == ["plan.md"]
    await seen.aclose()
    assert "are left out (3 files)" in warnings[0]


@pytest.mark.parametrize("linked", [False, True])
async def test_a_folder_moved_into_the_one_that_is_watched_is_taken_in(db: Database, folder: Path, linked: bool):
    moved = folder.with_name("moved")
    (moved / "deeper").mkdir(parents=True)
    (moved / "plan.md").write_text("# Plan\n")
    (moved / "deeper" / "draft.md").write_text("# Draft\n")
    (moved / "deeper" / "coming.md.part").write_text("# Com")
    watched = folder.with_name("link") if linked else folder
    if linked:
        watched.symlink_to(folder, target_is_directory=True)
    assert await _seen_after(db, watched, lambda: moved.rename(folder / "moved"), 2) == {
        "plan.md": None,
        "draft.md": None,
    }


async def test_what_appears_and_cannot_be_taken_in_is_told_by_the_watch(db: Database, folder: Path):
    def appear() -> None:
        os.mkfifo(folder / "pipe")
        (folder / "nowhere").symlink_to(folder / "gone")
        (folder / "above").symlink_to(folder, target_is_directory=True)
        os.utime(folder)

    assert await _seen_after(db, folder, appear, 3) == {
        "pipe": "it is neither a file nor a folder",
        "nowhere": "it cannot be read (No such file or directory)",
        "above": "it is a link to a folder, which is not followed: add that folder itself",
    }


@pytest.mark.parametrize("from_the_start", [False, True])
async def test_a_name_that_is_not_utf8_ends_no_watch(
    db: Database, folder: Path, from_the_start: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(watching, "LOOK", 0.2)
    coffee = folder / os.fsdecode(b"caf\xe9.md")
    stop, found = asyncio.Event(), set[str]()
    if from_the_start:
        coffee.write_text("# Coffee\n")
    seen = watch(db, folder, stop=stop)
    async with asyncio.timeout(60):
        found |= {one.name for one in await anext(seen)}
        coffee.write_text("# More coffee\n")
        while "caf\ufffd.md" not in found:
            found |= {one.name for one in await anext(seen)}
        (folder / "tea.md").write_text("# Tea\n")
        while "tea.md" not in found:
            found |= {one.name for one in await anext(seen)}
        stop.set()
        assert [one async for one in seen] == []


async def _seen_after(db: Database, folder: Path, happens: Callable[[], object], n: int) -> dict[str, str | None]:
    """What a watch of the folder tells, once something has happened: of so many files or more."""
    found: dict[str, str | None] = {}
    stop = asyncio.Event()
    seen = watch(db, folder, stop=stop)
    async with asyncio.timeout(60):
        assert await anext(seen) == []
        happens()
        while len(found) < n:
            found |= {one.name: one.reason for one in await anext(seen)}
    stop.set()
    await seen.aclose()
    return found


async def test_a_database_that_goes_away_while_a_folder_is_watched_is_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    with tempfile.TemporaryDirectory(prefix="gristmill-cli-") as place:
        os.chmod(place, 0o711)
        settings = Settings(data=Path(place) / "data")
        server = Embedded(settings.data)
        try:
            monkeypatch.setattr(pool, "PATIENCE", 1.0)  # both of them ask again and again until a connection is lent
            async with open_database(settings) as db, asyncio.timeout(120):
                seen = watch_folder(FileIntake(db, settings, GLOBAL, patient=True), folder)
                assert await anext(seen) == []
                await asyncio.to_thread(server.stop)
                (folder / "plan.md").write_text("# Plan\n")
                assert [(one.name, one.status) for one in await anext(seen)] == [("plan.md", "added")]
                following = asyncio.create_task(follow(Session(db, settings), [DocumentId(1)], quiet=True))
                await asyncio.to_thread(server.stop)
                await asyncio.to_thread(server.start)
                monkeypatch.setattr(pool, "PATIENCE", 20.0)  # this one asks once
                async with Database(db.url) as other, other.transaction() as tx:
                    await remove(tx, [DocumentId(1)])
                assert await following == []
                await seen.aclose()
        finally:
            await asyncio.to_thread(server.stop, "immediate")


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user can reach."""
    with tempfile.TemporaryDirectory(prefix="gristmill-sources-") as place:
        os.chmod(place, 0o755)
        yield Path(place)


@asynccontextmanager
async def ordinary_user(db: Database, elsewhere: Path) -> AsyncIterator[None]:
    """Root may look into every folder; so do this as somebody else.

    That user may not reach our modules, nor the server: so one file is added before, which loads and connects all.
    """
    if os.geteuid() != 0:
        yield
        return
    (elsewhere / "first.md").write_text("# First\n")
    first = watch(db, elsewhere)
    await anext(first)
    await first.aclose()
    os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("name", ["closed", ".closed"])
async def test_a_closed_folder_is_told_and_everything_around_it_is_watched(
    db: Database, folder: Path, shared: Path, name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(watching, "LOOK", 0.2)
    stop, warnings, found = asyncio.Event(), list[str](), dict[str, str]()
    for one in ("before", name, "zenith"):
        (shared / one).mkdir()
    (shared / "before" / "plan.md").write_text("# Plan\n")
    (shared / name).chmod(0)
    seen = watch(db, shared, stop=stop, warnings=warnings)
    try:
        async with asyncio.timeout(60), ordinary_user(db, folder):
            while "plan.md" not in found:
                found |= {one.name: one.status for one in await anext(seen)}
    finally:
        (shared / name).chmod(0o700)
    assert f"because {shared / name} is closed to us: it is looked through every 0.2 s instead" in warnings[0]
    (shared / "zenith" / "later.md").write_text("# Later\n")
    async with asyncio.timeout(60):
        while "later.md" not in found:
            found |= {one.name: one.status for one in await anext(seen)}
    stop.set()
    await seen.aclose()
    refused = {} if name.startswith(".") else {name: "refused"}
    assert found == {"plan.md": "added", "later.md": "added"} | refused
