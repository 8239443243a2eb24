"""The register of sources: named by commands or gristmill.toml, scheduled apart, removed with what came."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from farm import Farm, a_farm, a_mail
from structlog.testing import capture_logs

from gristmill.db import Database
from gristmill.errors import Refused, Unknown
from gristmill.ids import SourceId
from gristmill.queue import list_schedules
from gristmill.scopes import Scope
from gristmill.settings import Settings, SourceSettings
from gristmill.sources import Wanted, add_source, drop_source, find_source, pause_source
from gristmill.sources.poller import list_key, poll_key
from gristmill.sources.register import apply_declared, make_cron
from gristmill.sources.room import prepare
from gristmill.sources.status import SourceWork, decide_status, find_stopped_sources
from gristmill.sources.store import SQL
from plans import count_rows


@pytest.fixture
async def farm(db: Database, tmp_path: Path) -> AsyncIterator[Farm]:
    async with a_farm(db, tmp_path) as opened:
        yield opened


@pytest.mark.parametrize(
    ("every", "cron"),
    [
        (timedelta(minutes=1), "* * * * *"),
        (timedelta(minutes=5), "2-59/5 * * * *"),
        (timedelta(hours=1), "37 * * * *"),
        (timedelta(hours=6), "37 0-23/6 * * *"),
        (timedelta(days=1), "37 0 * * *"),
    ],
)
def test_a_source_is_due_as_often_as_it_is_told_at_a_minute_of_its_own(every: timedelta, cron: str) -> None:
    assert make_cron(every, 37) == cron


@pytest.mark.parametrize("every", [timedelta(seconds=30), timedelta(minutes=7), timedelta(hours=5), timedelta(days=2)])
def test_an_interval_that_no_clock_can_keep_is_refused(every: timedelta) -> None:
    with pytest.raises(Refused, match="cannot be polled every"):
        make_cron(every, 0)


@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ({"options": {"path": ""}}, "The option path of a source of the kind eml is wrong: it is “”, and must have"),
        ({"options": {"path": "/x"}, "every": timedelta(0)}, "A source cannot be polled every 0 minutes"),
        (
            {"kind": "imap", "options": {"host": "x", "user": "a"}},
            "Something about the options of a source of the kind imap is wrong: it needs a password",
        ),
    ],
    ids=["empty", "never", "together"],
)
async def test_a_wish_that_cannot_be_fulfilled_gets_one_sentence(
    db: Database, wish: dict[str, Any], reason: str
) -> None:
    async with db.transaction() as tx:
        with pytest.raises(Refused, match=reason):
            await add_source(tx, Wanted("one", wish.pop("kind", "eml"), **wish))


async def test_sources_are_due_at_different_minutes(farm: Farm) -> None:
    for n in range(4):
        await farm.add("eml", name=f"s{n}", path="/x")
    async with farm.db.transaction() as tx:
        polls = [one.cron for one in await list_schedules(tx) if one.name.endswith(".poll")]
    assert len(set(polls)) == 4


# --- gristmill.toml


def declared(**named: dict[str, Any]) -> Settings:
    return Settings(sources=SourceSettings(named=named))


async def test_gristmill_toml_adds_changes_and_pauses_sources(farm: Farm) -> None:
    async with farm.db.transaction() as tx:
        await apply_declared(tx, declared(work={"kind": "eml", "path": "/a", "client": "acme", "every": "15min"}))
        first = await find_source(tx, "work")
        await tx.execute("UPDATE source SET checkpoint = '{}'")
        await apply_declared(tx, declared(work={"kind": "eml", "path": "/a", "client": "acme", "every": "15min"}))
        same = await find_source(tx, "work")
        await apply_declared(tx, declared(work={"kind": "eml", "path": "/b", "client": "acme", "every": "15min"}))
        moved = await find_source(tx, "work")
        await apply_declared(tx, declared())
        gone = await find_source(tx, "work")
        await apply_declared(tx, declared(work={"kind": "eml", "path": "/b", "client": "acme", "every": "15min"}))
        back = await find_source(tx, "work")
    assert (first.client, first.every, first.declared) == ("acme", timedelta(minutes=15), True)
    assert same.checkpoint == {}
    assert (moved.id, moved.options, moved.checkpoint) == (first.id, {"path": "/b"}, None)
    assert (gone.paused, gone.declared) == (True, False)
    assert (back.paused, back.declared, back.id) == (False, True, first.id)


MAILBOX = {"kind": "imap", "host": "mail.test", "user": "anna", "password": "env:OLD"}


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({"password": "env:NEW"}, True),
        ({"idle": False}, True),
        ({"password": None, "token_command": "print-token"}, True),
        ({"security": "starttls"}, True),
        ({"folders": "INBOX,Letters"}, True),
        ({"every": "30min"}, True),
        ({"host": "other.test"}, False),
        ({"user": "bob"}, False),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
async def test_a_source_begins_anew_only_if_it_is_another_place(farm: Farm, change: dict[str, Any], kept: bool) -> None:
    changed = {name: value for name, value in {**MAILBOX, **change}.items() if value is not None}
    async with farm.db.transaction() as tx:
        await apply_declared(tx, declared(work=dict(MAILBOX)))
        await tx.execute("UPDATE source SET checkpoint = '{\"folders\": {}}'")
        await apply_declared(tx, declared(work=changed))
        assert (await find_source(tx, "work")).checkpoint == ({"folders": {}} if kept else None)


async def test_a_worker_whose_settings_name_no_sources_leaves_those_of_another_folder_alone(
    farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = declared(work={"kind": "eml", "path": "/a"})
    (tmp_path / "elsewhere").mkdir()
    async with farm.db.transaction() as tx:
        await apply_declared(tx, named)
        monkeypatch.chdir(tmp_path / "elsewhere")
        await apply_declared(tx, declared())
        assert not (await find_source(tx, "work")).paused
        await apply_declared(tx, named)  # now both name it, and the last one counts
        await apply_declared(tx, declared())
        assert (await find_source(tx, "work")).paused


async def test_a_worker_of_another_machine_leaves_the_sources_of_this_one_alone(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with farm.db.transaction() as tx:
        await apply_declared(tx, declared(work={"kind": "eml", "path": "/a"}))
        monkeypatch.setattr("socket.gethostname", lambda: "another")
        await apply_declared(tx, declared())
        assert not (await find_source(tx, "work")).paused


@pytest.mark.parametrize("paused", [True, False], ids=["pauses", "resumes"])
async def test_a_source_that_its_file_names_no_more_is_told_until_a_person_pauses_or_resumes_it(
    farm: Farm, paused: bool
) -> None:
    async with farm.db.transaction() as tx:
        await apply_declared(tx, declared(work={"kind": "eml", "path": "/a"}))
        with capture_logs() as logs:
            await apply_declared(tx, declared())
        assert [(one["event"], one["log_level"], one["source"]) for one in logs] == [
            ("source.paused", "warning", "work")
        ]
        (found,) = await find_stopped_sources(tx, farm.settings)
        assert found.rule == "source-undeclared"
        assert "gristmill.toml does not name it any more" in found.sentence
        await apply_declared(tx, declared())  # the next worker says nothing new
        assert len(await find_stopped_sources(tx, farm.settings)) == 1
        await pause_source(tx, await find_source(tx, "work"), paused)
        assert await find_stopped_sources(tx, farm.settings) == []


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        ({"kind": "fax"}, "no kind of source"),
        ({"kind": "eml"}, "The option path"),
        ({"kind": "eml", "path": "/x", "every": "soon"}, "not a duration"),
        ({"kind": "imap", "host": "h", "user": "u", "password": "secret"}, "must not stand here"),
    ],
)
async def test_a_mistake_in_gristmill_toml_gets_one_sentence(farm: Farm, entry: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence) as refused:
        async with farm.db.transaction() as tx:
            await apply_declared(tx, declared(work=entry))
    assert "secret" not in str(refused.value).replace("it is a secret", "")


# --- removing


async def test_a_source_goes_with_its_documents_but_not_with_those_that_another_source_has(
    farm: Farm, tmp_path: Path
) -> None:
    for folder, names in (("a", "12"), ("b", "23")):
        (tmp_path / folder).mkdir()
        for name in names:
            (tmp_path / folder / f"{name}.eml").write_bytes(a_mail(name))
    first = await farm.add("eml", name="first", path=str(tmp_path / "a"))
    second = await farm.add("eml", name="second", path=str(tmp_path / "b"))
    await farm.work()
    assert set(await farm.documents()) == {f"email::{n}@acme.test" for n in "123"}
    gone = await drop_source(farm.db, first, keep=False)
    assert gone["documents"] == 1
    assert set(await farm.documents()) == {f"email::{n}@acme.test" for n in "23"}
    await drop_source(farm.db, second, keep=True)
    assert set(await farm.documents()) == {f"email::{n}@acme.test" for n in "23"}
    assert await farm.rows("SELECT 1 FROM source_item") == []
    assert await farm.rows("SELECT source FROM source_tally GROUP BY source, state HAVING sum(n) <> 0") == []
    assert await farm.rows("SELECT 1 FROM schedule WHERE name LIKE 'source.%%'") == []
    async with farm.db.transaction() as tx:
        with pytest.raises(Unknown):
            await find_source(tx, "first")


async def test_what_a_source_kept_on_a_machine_goes_when_a_worker_starts_there_after_the_source(
    farm: Farm, tmp_path: Path
) -> None:
    sources = [await farm.add("eml", name=name, path="/x") for name in ("here", "gone")]
    kept = farm.settings.data / "sources"
    names = [str(one.id) for one in sources]
    await asyncio.to_thread(fill_folders, kept, [*names, "notes"])
    await drop_source(farm.db, sources[1], keep=True)  # on another machine
    async with farm.db.transaction() as tx:
        await prepare(tx, farm.settings)
    assert sorted(one.name for one in await asyncio.to_thread(lambda: list(kept.iterdir()))) == [names[0], "notes"]


def fill_folders(folder: Path, names: list[str]) -> None:
    for name in names:
        (folder / name / "clone.git").mkdir(parents=True)


async def test_the_same_name_of_two_clients_must_be_told_apart(farm: Farm) -> None:
    await farm.add("eml", Scope("acme"), name="work", path="/x")
    await farm.add("eml", Scope("globex"), name="work", path="/x")
    async with farm.db.transaction() as tx:
        with pytest.raises(Refused, match="2 clients have a source"):
            await find_source(tx, "work")
        assert (await find_source(tx, "work", "acme")).client == "acme"


# --- how it is


async def test_a_source_in_line_is_never_called_broken(farm: Farm) -> None:
    source = await farm.add("eml", path="/x")
    late = await farm.rows("SELECT clock() + interval '1 day' AS now")
    old = type(source)(**{**vars(source), "now": late[0].now})
    in_line = SourceWork("source.1.poll", "pending", None, None)
    running = SourceWork("source.1.poll", "processing", None, None)
    assert decide_status(old, in_line, None).status == "waiting"
    assert decide_status(old, running, None).status == "polling"
    assert decide_status(old, None, None).status == "stopped"
    assert decide_status(source, None, None).status == "new"


async def test_how_sources_are_is_known_without_a_look_at_all_tasks(farm: Farm) -> None:
    async with farm.db.transaction() as tx:
        await tx.execute(
            "INSERT INTO task (id, created_at, finished_at, lane, outcome, queue, kind)"
            " SELECT nextval('task_id'), clock(), clock(), 0, 'completed', 'mill', 'grind'"
            " FROM generate_series(1, 5000)"
        )
        await tx.execute("ANALYZE task")
        keys = [poll_key(SourceId(1)), list_key(SourceId(1))]
        plan = await tx.value("EXPLAIN (ANALYZE, FORMAT JSON) " + SQL["poll_tasks"], keys=keys)
    assert count_rows(plan[0]["Plan"]) < 100
