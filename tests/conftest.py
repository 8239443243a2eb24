"""A real PostgreSQL for every test that asks for one: one server per run, one database per test.

`url` is a fresh, migrated database; `db` is the same, opened. Tests that ask for neither start nothing.
`GRISTMILL_TEST_DATABASE_URL` names another server to use, whose user may create databases.
"""

import asyncio
import gc
import os
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psutil
import psycopg
import pytest
import structlog
from hypothesis import HealthCheck, settings
from psycopg import sql
from xdist.scheduler import LoadScopeScheduling

from databases import Databases, drop, exists, in_database
from gristmill.db import Database
from gristmill.db.embedded import ADMIN, USER, Embedded
from gristmill.db.embedded import LOCK as LOCK_FILE
from gristmill.db.migrate import migrate
from gristmill.db.schema import read_schema
from nursery import NURSERY, open_nursery
from server_sessions import SESSIONS, keep_sessions

# no test is decided by a timing: on a busy machine examples are made slowly, and that says nothing of the code
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
settings.register_profile("thorough", settings(), max_examples=1000)  # pytest --hypothesis-profile=thorough

os.environ.pop("COLUMNS", None)  # tables are as wide as on paper, whatever terminal the tests run in

FOLDER = pytest.StashKey[Path]()
FOLDERS = "gristmill-tests-"
MEMORY = Path("/dev/shm")
# what takes long begins first, so that no process is left with it when the others are done
LONGEST = (
    "faults",
    "test_killed_runs",
    "test_real_model",
    "test_faults",
    "test_browser",
    "test_flow",
    "test_hostile_mails",
    "test_fuzzing",
    "test_cli_up",
    "test_cli_manual",
    "test_surface",
    "test_runs_browser",
    "test_reading_browser",
    "test_injection",
    "test_conformance",
    "test_parts",
    "test_embedded",
    "test_examples",
    "test_inbox_browser",
    "test_state_machine",
    "test_model",
    "test_recognition",
    "test_chaos",
    "test_cli_worker",
    "test_cli_documents",
    "test_cli_orphans",
    "test_cli_search",
    "test_killed",
    "test_records",
    "router",
)
# what loads the same model, or starts the same processes, runs in the same process, which does so once
TOGETHER = {
    "tests/documents/test_faults.py": "models",
    "tests/documents/test_flow.py": "models",
    "tests/documents/test_inbox.py": "ocr",
    "tests/documents/test_llm_turns.py": "mills",
    "tests/documents/test_parts.py": "mills",
    "tests/documents/test_phases.py": "mills",
    "tests/documents/test_reading_pdf.py": "ocr",
    "tests/documents/test_reading_pictures.py": "ocr",
    "tests/documents/test_places.py": "ocr",
    "tests/documents/test_reading_plain.py": "plain",
    "tests/documents/test_spool.py": "mills",
    "tests/documents/test_take_in.py": "mills",
    "tests/documents/test_tenants.py": "mills",
    "tests/documents/test_troubles.py": "mills",
    "tests/documents/test_urgency.py": "models",
    "tests/documents/test_viewing.py": "mills",
    "tests/models/language/test_extraction.py": "names",
    "tests/models/embedding/test_minilm.py": "minilm",
    "tests/models/ocr/test_recognition.py": "ocr",
    "tests/processes/test_process_pool.py": "processes",
    "tests/router/test_clients.py": "llm",
    "tests/router/test_embedded.py": "llm",
    "tests/test_rules.py": "rules",
}
# what `make test-ROOM` leaves to `make test`: each of them takes a tenth of its room's time and more
SLOW = {
    "tests/agents/test_injection.py",
    "tests/agents/test_real_model.py",
    "tests/cli/test_cli_manual.py",
    "tests/cli/test_cli_orphans.py",
    "tests/cli/test_cli_search.py",
    "tests/cli/test_cli_up.py",
    "tests/cli/test_cli_worker.py",
    "tests/documents/test_faults.py",
    "tests/documents/test_inbox.py",
    "tests/documents/test_llm_turns.py",
    "tests/records/test_killed.py",
    "tests/sources/test_conformance.py",
    "tests/sources/test_fault_run.py",
    "tests/sources/test_hostile_mails.py",
    "tests/web/browsers/test_ask_browser.py",
    "tests/web/browsers/test_browser.py",
    "tests/web/browsers/test_inbox_browser.py",
    "tests/web/browsers/test_reading_browser.py",
    "tests/web/browsers/test_runs_browser.py",
    "tests/web/test_fuzzing.py",
    "tests/web/test_surface.py",
}
ENOUGH = 3 * 1024**3  # bytes: a run uses less than one
# nothing here outlives the run, and durability is tested on servers of its own
HASTY = {
    "shared_buffers": "128MB",
    "min_wal_size": "80MB",
    "max_wal_size": "256MB",
    "autovacuum_naptime": "60s",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
}
# The planner takes a new table for one of ten pages, as after any migration, and a vacuumed one for what it is. Plans
# for empty tables read them from end to end, and a session that is kept goes on with them when a test fills the tables.
FORGET_THAT_TABLES_ARE_EMPTY = """
UPDATE pg_class SET reltuples = -1, relpages = 0
 WHERE relkind = 'r' AND reltuples = 0 AND relnamespace::regnamespace::text !~ '^(pg_|information_schema)'
"""
EXTERNAL = os.environ.get("GRISTMILL_TEST_DATABASE_URL")
LOCK = 7_465_737  # any number: only our own test runs take it


def pytest_configure(config: pytest.Config) -> None:
    """The first process of a run makes the folder of all its files; the others are told."""
    told = getattr(config, "workerinput", {}).get("folder")
    folder = config.stash[FOLDER] = Path(told or place() / f"{FOLDERS}{os.getpid()}")
    if not told:
        sweep()
        folder.mkdir(mode=0o711)
        (folder / "tmp").mkdir()
        (folder / "tmp").chmod(0o1777)  # servers are started as other users, too
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder / "tmp")
    os.environ["GRISTMILL_QUEUE_NICE"] = "0"  # among so many tests at once, what steps back would never be done
    # tests start hundreds of processes, and each would compile all of our modules anew
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False  # and pytest would rewrite all tests anew, in each process
    # to draw an error with all variables takes half a second; the program itself writes it plainly, too
    structlog.get_config()["processors"][-1].exception_formatter = structlog.dev.plain_traceback
    open_nursery()
    keep_sessions()
    gc.disable()  # until all tests are loaded: what is loaded stays, and would be looked through again and again


def pytest_collection_finish() -> None:
    """What is loaded by now stays: each full collection would look through a million objects that are no garbage."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["folder"] = str(node.config.stash[FOLDER])


def place() -> Path:
    """Memory where there is enough: making a database there takes a fifth of the time."""
    usable = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    if usable and min(shutil.disk_usage(MEMORY).free, psutil.virtual_memory().available) > ENOUGH:
        return MEMORY
    return Path(tempfile.gettempdir())


def sweep() -> None:
    """Remove what runs left that were killed before they could do so."""
    for folder in place().glob(f"{FOLDERS}*"):
        started_by = int(folder.name.removeprefix(FOLDERS))
        if not psutil.pid_exists(started_by) and folder.stat().st_uid == os.geteuid():
            remove(folder)


class Scheduling(LoadScopeScheduling):
    """Every test by itself to whichever process is free, in our order, but some together."""

    def _split_scope(self, nodeid: str) -> str:
        return TOGETHER.get(nodeid.partition("::")[0], nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Scheduling:
    config.option.loadscopereorder = False
    return Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)  # before pytest looks at the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def rank(item: pytest.Item) -> int:
        names = {*item.path.parts, item.path.stem}
        return next((place for place, name in enumerate(LONGEST) if name in names), len(LONGEST))

    for item in items:
        if item.nodeid.partition("::")[0] in SLOW:
            item.add_marker(pytest.mark.slow)
    items.sort(key=rank)


def pytest_unconfigure(config: pytest.Config) -> None:
    NURSERY.clear()
    if not hasattr(config, "workerinput"):
        remove(config.stash[FOLDER])


def remove(folder: Path) -> None:
    for lock in folder.rglob(LOCK_FILE):
        Embedded(lock.parent).stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def server(pytestconfig: pytest.Config) -> str:
    """The URL of the server's maintenance database, for its superuser; the first process starts the server."""
    if EXTERNAL:
        return EXTERNAL
    embedded = Embedded(pytestconfig.stash[FOLDER] / "server", HASTY)
    embedded.start()
    return embedded.url("postgres", ADMIN)


@pytest.fixture(scope="session")
def owner(server: str) -> str:
    """The user that tests connect as: the owner of their databases, and no superuser where the server is ours."""
    return urlsplit(server).username or "" if EXTERNAL else USER


@pytest.fixture(scope="session")
def admin(server: str) -> Iterator[psycopg.Connection]:
    """A connection that creates and drops the databases of this process's tests."""
    with psycopg.connect(server, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def template(server: str, owner: str, admin: psycopg.Connection) -> str:
    """The name of a migrated database, made once for this very schema."""
    name = f"gristmill_template_{read_schema().checksum[:12]}"
    admin.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    try:
        if not exists(admin, name):
            make_template(server, owner, admin, name)
    finally:
        admin.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
    return name


def make_template(server: str, owner: str, admin: psycopg.Connection, name: str) -> None:
    """Migrated under another name, so that a template is never half made."""
    draft = f"{name}_draft"
    drop(admin, draft)
    admin.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(draft), sql.Identifier(owner)))
    with psycopg.connect(in_database(server, draft), autocommit=True) as inside:
        inside.execute("CREATE EXTENSION IF NOT EXISTS vector")
    asyncio.run(migrated(in_database(server, draft, owner)))
    with psycopg.connect(in_database(server, draft), autocommit=True) as inside:
        inside.execute("VACUUM FULL")  # a tenth fewer files, and less in them: each test copies them
        if inside.info.parameter_status("is_superuser") == "on":  # nobody else may
            inside.execute(FORGET_THAT_TABLES_ARE_EMPTY)
            inside.execute("VACUUM FULL pg_class")
    # leaves a file with what the server must know of its own tables; else each copy would gather it anew
    psycopg.connect(in_database(server, draft)).close()
    admin.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(sql.Identifier(draft), sql.Identifier(name)))


async def migrated(url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await migrate(connection)


@pytest.fixture(scope="session")
def databases(server: str, owner: str, template: str) -> Iterator[Databases]:
    with psycopg.connect(server, autocommit=True) as connection, ThreadPoolExecutor(1) as thread:
        made = Databases(thread, connection, server, owner, template)
        yield made
        made.close()


@pytest.fixture(scope="module")
def ends_children() -> Iterator[None]:
    """A closed pool ends its children, as it does everywhere but in tests."""
    NURSERY.is_open = False
    yield
    NURSERY.is_open = True


@pytest.fixture(scope="module")
def ends_sessions() -> Iterator[None]:
    """A closed connection ends its session in the server, as it does everywhere but in tests."""
    SESSIONS.is_open = False
    yield
    SESSIONS.is_open = True


@pytest.fixture
def empty_url(server: str, admin: psycopg.Connection) -> Iterator[str]:
    """A fresh database without our schema."""
    name = f"gristmill_test_{uuid4().hex[:12]}"
    admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield in_database(server, name)
    drop(admin, name)


@pytest.fixture
def url(server: str, owner: str, databases: Databases) -> Iterator[str]:
    """A fresh database with our schema."""
    name = databases.take()
    found = in_database(server, name, owner)
    SESSIONS.lend(found)
    yield found
    SESSIONS.give_back(found)
    databases.give_back(name)


@pytest.fixture
async def db(url: str) -> AsyncIterator[Database]:
    """A fresh database with our schema, opened."""
    async with Database(url) as database:
        yield database
