"""The embedded server starts once for all programs, and starts again after every kind of end."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import psutil
import psycopg
import pytest

from gristmill.db import embedded, programs
from gristmill.db.embedded import Embedded
from gristmill.errors import Refused

START = """
import os, pwd, sys
from pathlib import Path
from gristmill.db.embedded import Embedded
from gristmill.errors import Refused

user, data = sys.argv[1:]
if user:
    entry = pwd.getpwnam(user)
    os.setgroups([])
    os.setgid(entry.pw_gid)
    os.setuid(entry.pw_uid)
try:
    print(Embedded(Path(data), {"shared_buffers": "32MB"}).start(), flush=True)
except Refused as refused:
    sys.exit(str(refused))
"""
WAIT = "\nsys.stdin.read()"

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@pytest.fixture
def room() -> Iterator[Path]:
    """A folder that every user can enter, unlike pytest's own; servers below it end with the test."""
    folder = Path(tempfile.mkdtemp(prefix="gm-"))
    folder.chmod(0o755)
    yield folder
    for lock in folder.rglob(embedded.LOCK):
        Embedded(lock.parent).stop("immediate")
        shutil.rmtree(Embedded(lock.parent).socket_folder, ignore_errors=True)
    shutil.rmtree(folder)


@pytest.fixture
def fresh(room: Path) -> Embedded:
    """A server that was never started."""
    return Embedded(room / "data", {"shared_buffers": "32MB"})


@pytest.fixture(scope="session")
def stopped() -> Iterator[Path]:
    """The data folder of a server that ran before; copying it takes a tenth of the time of a first start."""
    with tempfile.TemporaryDirectory(prefix="gm-") as folder:
        Path(folder).chmod(0o755)
        server = Embedded(Path(folder) / "data", {"shared_buffers": "32MB"})
        server.start()
        server.stop()
        yield server.data


@pytest.fixture
def server(fresh: Embedded, stopped: Path) -> Embedded:
    """A server that ran before and is stopped."""
    subprocess.run(["cp", "--archive", stopped, fresh.data], check=True)
    return fresh


def ask(server: Embedded, query: str) -> str:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        row = connection.execute(query.encode()).fetchone()
        return str(row[0]) if row else ""


def do(server: Embedded, statement: str) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(statement.encode())


def pid(server: Embedded) -> int:
    found = server.status().pid
    assert found is not None
    return found


class Ended(NamedTuple):
    code: int
    said: str


def started_by(user: str, data: Path) -> Ended:
    """Start it from another process, as another user."""
    program = programs.programs_for(None, data) / "postgres"
    if user and subprocess.run(["test", "-x", program], user=user, cwd="/").returncode:
        pytest.skip(f"the installed programs lie where {user} cannot reach them")
    command = [sys.executable, "-c", START, user, str(data)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return Ended(ended.returncode, (ended.stdout + ended.stderr).strip())


def test_the_first_start_gives_an_empty_database_of_ours(fresh: Embedded) -> None:
    assert fresh.start() == fresh.url()
    assert ask(fresh, "SELECT current_database() || ' ' || current_user") == "gristmill gristmill"
    assert ask(fresh, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == "1"


def test_a_second_start_attaches_to_the_running_server(server: Embedded) -> None:
    server.start()
    first = pid(server)
    assert server.start() == server.url()
    assert pid(server) == first


def test_many_processes_that_start_at_once_share_one_server(fresh: Embedded) -> None:
    command = [sys.executable, "-c", START, "", str(fresh.data)]
    starters = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(5)]
    said = [starter.communicate()[0].strip() for starter in starters]
    assert said == [fresh.url()] * 5
    assert fresh.log.read_text().count("starting PostgreSQL") == 1


def test_the_server_outlives_its_starter_and_its_terminal(fresh: Embedded) -> None:
    command = [sys.executable, "-c", START + WAIT, "", str(fresh.data)]
    starter = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    with starter:
        assert starter.stdout
        starter.stdout.readline()
        os.killpg(starter.pid, signal.SIGINT)
        os.killpg(starter.pid, signal.SIGHUP)
        os.killpg(starter.pid, signal.SIGKILL)
    assert ask(fresh, "SELECT 1") == "1"
    assert os.getsid(pid(fresh)) not in (starter.pid, os.getsid(0))


def test_a_stopped_server_starts_again_with_its_data(server: Embedded) -> None:
    server.start()
    do(server, "CREATE TABLE grain AS SELECT 7 AS kernels")
    assert server.stop()
    assert not server.running()
    assert not server.stop()
    server.start()
    assert ask(server, "SELECT kernels FROM grain") == "7"


def test_a_killed_server_starts_again_with_its_data(server: Embedded) -> None:
    server.start()
    do(server, "CREATE TABLE grain AS SELECT 7 AS kernels")
    with psycopg.connect(server.url()):  # the process of this connection outlives the postmaster for a moment
        os.kill(pid(server), signal.SIGKILL)
        assert embedded.wait_until(60, lambda: not server.running())
        assert (server.cluster / "postmaster.pid").exists()
        server.start()
    assert ask(server, "SELECT kernels FROM grain") == "7"


def test_a_server_killed_amid_endless_work_is_not_started_beside_it(
    server: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.start()
    with ExitStack() as cleanup:
        connection = cleanup.enter_context(closing(psycopg.connect(server.url(), autocommit=True)))
        cleanup.callback(os.kill, connection.info.backend_pid, signal.SIGKILL)
        connection.pgconn.send_query(b"DO $$ BEGIN LOOP END LOOP; END $$")
        os.kill(pid(server), signal.SIGKILL)
        monkeypatch.setattr(embedded, "ORPHANS", 0.2)
        with pytest.raises(Refused, match=r"Processes of the killed server in .* are still at work: wait"):
            server.start()
    monkeypatch.undo()
    server.start()
    assert ask(server, "SELECT 1") == "1"


def test_a_server_without_a_free_connection_counts_as_started(room: Path) -> None:
    few = {"max_connections": "6", "superuser_reserved_connections": "2", "max_wal_senders": "0"}
    server = Embedded(room / "data", few | {"shared_buffers": "32MB"})
    server.start()
    with ExitStack() as held:
        for _ in range(4):  # two more are kept for the superuser, which we are not
            held.enter_context(psycopg.connect(server.url()))
        with pytest.raises(psycopg.OperationalError, match="slots are reserved"):
            psycopg.connect(server.url())
        assert server.start() == server.url()


def test_a_server_stopped_at_once_recovers_from_its_log(server: Embedded) -> None:
    server.start()
    do(server, "CREATE TABLE grain AS SELECT 7 AS kernels")
    assert server.stop("immediate")
    server.start()
    assert ask(server, "SELECT kernels FROM grain") == "7"


@pytest.mark.parametrize("left", ["", "not a number\n", "{stranger}\n/elsewhere\n"])
def test_a_pid_file_left_behind_does_not_block_the_start(server: Embedded, left: str) -> None:
    server.start()
    owner = server.cluster.stat().st_uid
    server.stop()
    stranger = subprocess.Popen(["sleep", "60"], user=owner)
    file = server.cluster / "postmaster.pid"
    file.write_text(left.format(stranger=stranger.pid))
    os.chown(file, owner, -1)
    server.start()
    assert pid(server) != stranger.pid
    stranger.kill()
    stranger.wait()


def test_a_start_waits_for_a_server_that_is_just_stopping(server: Embedded) -> None:
    server.start()
    first = pid(server)
    os.kill(first, signal.SIGINT)
    server.start()
    assert ask(server, "SELECT 1") == "1"


@pytest.mark.parametrize("name", ["x" * 120, "a,b", "Müller's 100 %"])
def test_any_path_will_do(room: Path, name: str) -> None:
    server = Embedded(room / name, {"shared_buffers": "32MB"})
    server.start()
    assert ask(server, "SELECT 1") == "1"
    assert server.socket_folder.stat().st_mode & 0o777 == 0o700
    server.stop("immediate")
    shutil.rmtree(server.socket_folder)


def test_a_socket_folder_that_somebody_else_prepared_is_refused(room: Path) -> None:
    server = Embedded(room / ("x" * 120))
    server.socket_folder.mkdir(mode=0o777)
    with pytest.raises(Refused, match=r"must be a folder that only .* may enter"):
        server.start()
    server.socket_folder.rmdir()


@as_root
def test_an_impostor_at_the_socket_is_not_believed(room: Path) -> None:
    server = Embedded(room / ("x" * 120), {"shared_buffers": "32MB"})
    server.start()
    os.chown(server.socket_folder, 1, 1)
    assert not server._answers()
    server.stop("immediate")
    with pytest.raises(Refused, match=r"must be a folder that only .* may enter"):
        server.start()
    shutil.rmtree(server.socket_folder)


def test_it_listens_on_its_private_socket_only(server: Embedded) -> None:
    server.start()
    assert psutil.Process(pid(server)).net_connections("inet") == []
    assert server.socket_folder.stat().st_mode & 0o777 == 0o700


def test_it_is_tuned_and_safe(fresh: Embedded) -> None:
    fresh.start()
    wanted = {"fsync": "on", "synchronous_commit": "on", "data_checksums": "on", "jit": "off"}
    assert {name: ask(fresh, f"SHOW {name}") for name in wanted} == wanted
    assert ask(fresh, "SHOW max_wal_size") == "4GB"
    assert ask(fresh, "SELECT upper('čřß') || ' ' || ('a' < 'B')") == "ČŘß false"


def test_the_users_own_settings_win(server: Embedded) -> None:
    server.start()
    server.stop()
    with (server.cluster / "postgresql.conf").open("a") as file:
        file.write("max_connections = 50\n")
    server.start()
    assert ask(server, "SHOW max_connections") == "50"


def test_a_mistake_in_the_users_settings_is_told(server: Embedded) -> None:
    server.start()
    server.stop()
    with (server.cluster / "postgresql.conf").open("a") as file:
        file.write("max_connections = many\n")
    with pytest.raises(Refused, match=r"did not start \(.*max_connections.*\): see .*postgres.log"):
        server.start()


def test_status_tells_what_runs_and_how_much_it_stores(fresh: Embedded) -> None:
    assert not fresh.status().running
    fresh.start()
    status = fresh.status()
    assert status.running
    assert status.version
    assert status.version.startswith("18.")
    assert status.size > 10_000_000


def test_a_folder_of_somebody_elses_files_is_left_alone(fresh: Embedded) -> None:
    fresh.data.mkdir()
    (fresh.data / "thesis.tex").touch()
    with pytest.raises(Refused, match="is not empty and not a data folder of Gristmill"):
        fresh.start()
    assert os.listdir(fresh.data) == ["thesis.tex"]
    assert fresh.data.stat().st_mode & 0o777 == 0o755


def test_a_file_is_no_data_folder(fresh: Embedded) -> None:
    fresh.data.touch()
    with pytest.raises(Refused, match="cannot be used \\(Not a directory\\)"):
        fresh.start()


def test_nobody_else_can_hold_the_lock_of_a_data_folder(fresh: Embedded) -> None:
    embedded.prepare_folder(fresh.data, fresh.cluster)
    assert (fresh.data / embedded.LOCK).stat().st_mode & 0o777 == 0o600


def test_a_data_folder_that_another_program_has_in_hand_is_refused(
    fresh: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "OTHERS", 0.1)
    embedded.prepare_folder(fresh.data, fresh.cluster)
    with embedded.lock_folder(fresh.data), pytest.raises(Refused, match="is in use: another program has been starting"):
        fresh.start()
    assert not fresh.cluster.exists()


def test_data_of_another_major_version_is_refused(fresh: Embedded) -> None:
    fresh.cluster.mkdir(parents=True)
    (fresh.data / embedded.LOCK).touch()
    (fresh.cluster / "PG_VERSION").write_text("16\n")
    with pytest.raises(Refused, match="was made by PostgreSQL 16 and this is 18"):
        fresh.start()


def test_an_interrupted_first_start_leaves_nothing_that_blocks_the_next(fresh: Embedded) -> None:
    fresh.data.mkdir()
    (fresh.data / embedded.LOCK).touch()
    (fresh.data / "postgres.new/base").mkdir(parents=True)
    fresh.start()
    assert ask(fresh, "SELECT 1") == "1"


def test_a_full_disk_is_told_before_anything_is_made(fresh: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    nearly_full = shutil.disk_usage("/")._replace(free=20 * embedded.MB)
    monkeypatch.setattr(embedded.shutil, "disk_usage", lambda path: nearly_full)
    with pytest.raises(Refused, match="has 20 MB left, PostgreSQL needs 200: free some space"):
        fresh.start()
    assert not fresh.cluster.exists()


def test_a_disk_that_fills_up_on_the_way_is_told(fresh: Embedded) -> None:
    text = 'FATAL:  could not write to file "pg_wal/xlogtemp.1": No space left on device'
    refused = embedded.failure("did not start", text, fresh.data, fresh.log)
    assert str(refused) == f"The disk of {fresh.data} is full: free some space, then try again."


def test_stopping_what_never_started_does_nothing(fresh: Embedded) -> None:
    assert not fresh.stop()
    assert not fresh.data.exists()


@as_root
def test_root_starts_it_as_another_user_and_still_gets_in(fresh: Embedded) -> None:
    fresh.start()
    assert psutil.Process(pid(fresh)).uids().real != 0
    assert ask(fresh, "SELECT 1") == "1"


@as_root
def test_programs_its_user_cannot_reach_are_copied_once(server: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "can_use", lambda *_: False)
    server.start()
    program = Path(psutil.Process(pid(server)).exe())
    assert program.is_relative_to(server.data / "server-18")
    made = program.stat().st_mtime_ns, program.stat().st_ino
    server.stop()
    server.start()
    assert (program.stat().st_mtime_ns, program.stat().st_ino) == made
    assert ask(server, "SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") == "1"


@as_root
def test_a_data_folder_the_servers_user_cannot_reach_is_refused_and_untouched(room: Path) -> None:
    (room / "home").mkdir(mode=0o700)
    with pytest.raises(Refused, match=r"who cannot enter .*/home: choose a folder that everybody may enter"):
        Embedded(room / "home/data").start()
    assert (room / "home").stat().st_mode & 0o777 == 0o700
    assert os.listdir(room / "home") == []


@as_root
def test_anybody_else_starts_it_as_oneself(room: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    data = room / "nobody"
    data.mkdir()
    os.chown(data, nobody.pw_uid, nobody.pw_gid)
    server = Embedded(data)
    assert started_by("nobody", data) == (0, server.url())
    assert psutil.Process(pid(server)).uids().real == nobody.pw_uid


@as_root
def test_root_joins_and_restarts_a_users_server_as_that_user(room: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    data = room / "nobody"
    data.mkdir()
    os.chown(data, nobody.pw_uid, nobody.pw_gid)
    started_by("nobody", data)
    server = Embedded(data)
    first = pid(server)
    server.start()
    assert pid(server) == first
    server.stop()
    server.start()
    assert psutil.Process(pid(server)).uids().real == nobody.pw_uid
    server.stop()
    assert started_by("nobody", data).code == 0


@as_root
def test_a_folder_one_may_not_write_is_refused(room: Path) -> None:
    code, said = started_by("nobody", room / "data")
    assert code == 1
    assert said == (
        f"The data folder {room / 'data'} cannot be written by nobody: "
        "give that user the folder or choose another with GRISTMILL_DATA."
    )


@as_root
def test_a_server_of_another_user_is_refused(server: Embedded) -> None:
    server.start()
    owner = server.cluster.owner()
    server.data.chmod(0o755)
    code, said = started_by("nobody", server.data)
    assert code == 1
    assert f"belongs to the user {owner}: run as that user or choose another folder" in said
    assert server.running()


def test_equal_folders_make_equal_servers(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(room)
    assert Embedded(Path("data")) == Embedded(room / "data") == replace(Embedded(room / "x/../data"))


def test_a_server_that_does_not_let_us_in_is_told(server: Embedded) -> None:
    server.start()
    (server.cluster / "pg_hba.conf").write_text("local all all reject\n")
    os.kill(pid(server), signal.SIGHUP)
    assert embedded.wait_until(60, lambda: server.status().version is None)
    with pytest.raises(Refused, match=r"does not let us in \(.*pg_hba.conf rejects"):
        server.start()
