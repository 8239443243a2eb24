"""The PostgreSQL that comes in a wheel: started once, shared by all our processes, outliving each of them.

Only the binaries of the wheel are used. The server listens on a private Unix socket and nowhere else.
"""

import errno
import fcntl
import hashlib
import os
import re
import shutil
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Literal, TextIO
from urllib.parse import quote

import psutil
import psycopg
from psycopg import sql

from gristmill.db.accounts import SystemUser, account_of, own_folder, refuse_unreachable, run_as, user_name, write_as
from gristmill.db.programs import MAJOR, programs_for
from gristmill.db.roles import TENANT
from gristmill.db.tuning import MB, server_settings
from gristmill.errors import Refused

USER = "gristmill"  # owns the database, and is no superuser
ADMIN = "postgres"  # the superuser, which only creates the database and the roles
LOCK = "embedded.lock"  # also the sign of a data folder of Gristmill
SPACE_TO_START = 200 * MB
LONGEST_SOCKET_FOLDER = 100 - len("/.s.PGSQL.5432")  # the system allows 107 bytes for the whole path
PLAIN_PATH = re.compile(r"[\w/.+@~ -]+", re.ASCII)  # the server and libpq would read a comma as the end of a folder
LARGEST_LOG = 10 * MB
IN_USE = "is still in use"  # said of the shared memory of a server that was killed
FULL = re.compile("too many clients|connection slots are reserved")
PASSING = re.compile("starting up|shutting down|not yet accepting|closed the connection")
RECOVERY = 600.0  # seconds: crash recovery reads at most max_wal_size, but a slow disk may need minutes for it
SHUTDOWN = 120.0
ORPHANS = 15.0
OTHERS = 120.0  # seconds that another program may take to start or stop the server before we give up

STRANGER = re.compile(f'role "{ADMIN}" does not exist')  # before the first release there was one role for everything
OLDER = (
    "The data folder was made by a Gristmill from before the first release, and cannot be taken over: choose another "
    "with GRISTMILL_DATA and add the documents again."
)
ROLES = f"""
DO $$
BEGIN
  IF to_regrole('{USER}') IS NULL THEN CREATE ROLE {USER} LOGIN; END IF;
  IF to_regrole('{TENANT}') IS NULL THEN CREATE ROLE {TENANT} NOLOGIN; END IF;
END $$;
GRANT {TENANT} TO {USER};
GRANT pg_monitor TO {USER};  -- for the doctor
"""

OWN_CONF = """\
# PostgreSQL of Gristmill. The settings of Gristmill are in gristmill.conf, which is rewritten at every start.
include 'gristmill.conf'

# Your own settings go below this line and win.
"""


@dataclass(frozen=True)
class EmbeddedStatus:
    """The state of the embedded server, read without disturbing it."""

    running: bool
    pid: int | None
    version: str | None
    size: int
    data: Path
    socket: Path
    log: Path


@dataclass(frozen=True)
class Embedded:
    """One embedded server and its data folder."""

    data: Path
    settings: Mapping[str, str] = field(default_factory=dict[str, str], hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", self.data.expanduser().resolve())

    @property
    def cluster(self) -> Path:
        return self.data / "postgres"

    @property
    def log(self) -> Path:
        return self.data / "postgres.log"

    @property
    def socket_folder(self) -> Path:
        inside = self.data / "run"
        if len(os.fsencode(inside)) <= LONGEST_SOCKET_FOLDER and PLAIN_PATH.fullmatch(str(inside)):
            return inside
        # neither TMPDIR nor XDG_RUNTIME_DIR: every process must find the same folder, and it must outlive a login
        return Path("/tmp") / f"gristmill-{hashlib.sha256(os.fsencode(self.data)).hexdigest()[:16]}"

    def url(self, database: str = "gristmill", user: str = USER) -> str:
        """The URL for clients, whether or not the server runs."""
        return f"postgresql://{user}@/{quote(database, safe='')}?host={quote(str(self.socket_folder), safe='/')}"

    def start(self) -> str:
        """Initialises an empty folder, starts a stopped server, and returns its URL once it accepts connections."""
        with explain_errors(self.data):
            if not self._answers():
                owner = prepare_folder(self.data, self.cluster)
                with lock_folder(self.data):
                    self._bring_up(owner)
        return self.url()

    def stop(self, mode: Literal["fast", "immediate"] = "fast") -> bool:
        """Stops the server if it runs; after `immediate`, the next start recovers from the write-ahead log."""
        with explain_errors(self.data):
            if not (self.data / LOCK).exists():
                return False
            with lock_folder(self.data):
                return self._stop(signal.SIGINT if mode == "fast" else signal.SIGQUIT)

    def _stop(self, how: signal.Signals) -> bool:
        pid = self._postmaster()
        if pid is None:
            return False
        os.kill(pid, how)
        if not wait_until(SHUTDOWN, lambda: self._postmaster() is None):
            raise Refused(f"PostgreSQL (pid {pid}) does not stop: stop it immediately, or see {self.log}.")
        return True

    def running(self) -> bool:
        """Whether a living server uses the data folder."""
        return self._postmaster() is not None

    def status(self) -> EmbeddedStatus:
        """Whether the server runs, where, and how much it stores."""
        pid = self._postmaster()
        return EmbeddedStatus(
            running=pid is not None,
            pid=pid,
            version=self._version() if pid else None,
            size=size_of(self.cluster),
            data=self.data,
            socket=self.socket_folder,
            log=self.log,
        )

    def _version(self) -> str | None:
        with suppress(psycopg.Error), self._connect() as connection:
            return connection.info.parameter_status("server_version")
        return None

    def _connect(self, database: str = "postgres", user: str = USER) -> psycopg.Connection:
        return psycopg.connect(self.url(database, user), autocommit=True, connect_timeout=5)

    def _answers(self) -> bool:
        """Whether the server answers and has our database; quick, because most programs find it so."""
        try:
            (self.socket_folder / ".s.PGSQL.5432").lstat()  # cheaper than a connection that cannot succeed
            if self.socket_folder.lstat().st_uid != self.cluster.stat().st_uid:
                return False  # an impostor in /tmp
            with self._connect() as connection:
                return has_database(connection)
        except OSError:
            return False
        except psycopg.OperationalError as error:
            return FULL.search(str(error)) is not None  # a server without free connections runs

    def _postmaster(self) -> int | None:
        """The pid of the living server; a pid file alone proves nothing, because a crash leaves it behind."""
        try:
            pid = int((self.cluster / "postmaster.pid").read_text().partition("\n")[0])
            # the working folder of the server is its data folder; another program that got the same pid has another
            return pid if Path(psutil.Process(pid).cwd()) == self.cluster else None
        except (OSError, ValueError, psutil.Error):
            return None

    def _bring_up(self, owner: SystemUser | None) -> None:
        """Starts the server if none runs; waits for one that is still starting or stopping."""

        def there() -> bool:
            if self._postmaster() is None:
                self._start_anew(owner)
            return self._lets_us_in()

        if not wait_until(RECOVERY, there):
            raise Refused(f"PostgreSQL recovers for more than {RECOVERY / 60:.0f} min: wait, and see {self.log}.")

    def _start_anew(self, owner: SystemUser | None) -> None:
        refuse_foreign_cluster(self.cluster)
        programs = programs_for(owner, self.data)
        if not self.cluster.exists():
            self._initialise(programs, owner)
        self._configure(owner)
        self._launch(programs, owner)

    def _lets_us_in(self) -> bool:
        """Whether the server lets us into our database; raises an error that no waiting can cure."""
        ready = self._ready()
        try:
            self._make_database()
            return True
        except psycopg.OperationalError as error:
            if STRANGER.search(str(error)):
                raise Refused(OLDER) from error
            if ready and self._ready() and not PASSING.search(str(error)):
                raise
            return False

    def _make_database(self) -> None:
        """Makes the roles and the database, which gets its own name only when it is complete."""
        with self._connect(user=ADMIN) as connection:
            if has_database(connection):
                return
            connection.execute(sql.SQL(ROLES))
            connection.execute("DROP DATABASE IF EXISTS gristmill_new")
            connection.execute("CREATE DATABASE gristmill_new OWNER gristmill")
            with self._connect("gristmill_new", ADMIN) as inside:
                inside.execute("CREATE EXTENSION vector")
            connection.execute("ALTER DATABASE gristmill_new RENAME TO gristmill")

    def _ready(self) -> bool:
        """Whether the server itself last wrote that it is ready."""
        with suppress(OSError):
            lines = (self.cluster / "postmaster.pid").read_text().splitlines()
            return len(lines) > 7 and lines[7].strip() == "ready"
        return False

    def _initialise(self, programs: Path, owner: SystemUser | None) -> None:
        """Builds the cluster under another name, so that an interrupted initdb leaves nothing that looks finished."""
        free = shutil.disk_usage(self.data).free
        if free < SPACE_TO_START:
            raise Refused(
                f"The disk of {self.data} has {free // MB} MB left, PostgreSQL needs {SPACE_TO_START // MB}: "
                "free some space or choose another folder with GRISTMILL_DATA."
            )
        draft = self.data / "postgres.new"
        shutil.rmtree(draft, ignore_errors=True)
        own_folder(draft, owner)
        access = ("-U", ADMIN, "--auth-local=trust", "--auth-host=reject")
        # builtin: the same rules of order and case on every machine; full text search still needs the name for libc
        locale = ("--locale=C.UTF-8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
        options = ("--encoding=UTF8", "--data-checksums", "--no-instructions", *locale, *access)
        command = [programs / "initdb", "-D", draft, *options]
        made = run_as(owner, command)
        if made.returncode:
            shutil.rmtree(draft, ignore_errors=True)
            raise failure("could not initialise its data folder", made.stderr, self.data, self.log)
        write_as(owner, draft / "postgresql.conf", OWN_CONF)
        draft.rename(self.cluster)

    def _configure(self, owner: SystemUser | None) -> None:
        own_folder(self.socket_folder, owner)
        values = server_settings(self.socket_folder) | dict(self.settings)
        lines = [f"{name} = '{value}'\n" for name, value in values.items()]
        write_as(owner, self.cluster / "gristmill.conf", "# Rewritten at every start.\n" + "".join(lines))

    def _launch(self, programs: Path, owner: SystemUser | None) -> None:
        """Starts the server in a session of its own, without a parent whose end would end the server too."""
        patience = monotonic() + ORPHANS
        while self._postmaster() is None:
            # No living server uses the folder, so these files are left over. PostgreSQL itself would trust them if any
            # process of its user had that pid, or if nobody collects dead processes, which is common in a container.
            (self.cluster / "postmaster.pid").unlink(missing_ok=True)
            (self.socket_folder / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
            command = [programs / "pg_ctl", "start", "-s", "-w", "-t", f"{RECOVERY:.0f}", "-D", self.cluster]
            with open_log(self.log, owner) as log:
                begin = log.tell()
                started = run_as(owner, command, output=log.fileno()).returncode == 0
            if started:
                return
            reason = read_log_from(self.log, begin)
            # the processes of a killed server need a moment to notice that it is gone
            if IN_USE not in reason or monotonic() > patience:
                raise failure("did not start", reason, self.data, self.log)
            Event().wait(0.1)


def has_database(connection: psycopg.Connection) -> bool:
    return connection.execute("SELECT FROM pg_database WHERE datname = 'gristmill'").rowcount > 0


def prepare_folder(data: Path, cluster: Path) -> SystemUser | None:
    """Makes a missing data folder, refuses one of another program, and returns the user that runs the server."""
    names = set(os.listdir(data)) - {"lost+found"} if data.exists() else set[str]()
    if names and LOCK not in names:
        raise Refused(
            f"The folder {data} is not empty and not a data folder of Gristmill: choose another with GRISTMILL_DATA."
        )
    owner = account_of(cluster)
    if owner:
        refuse_unreachable(data if names else data.parent, owner)
    if not names:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)
        # root keeps the folder: the server only passes through it to the folders that are made for it
        data.chmod(0o711 if owner else 0o700)
        (data / LOCK).touch(mode=0o600)
    return owner


def refuse_foreign_cluster(cluster: Path) -> None:
    if not cluster.exists():
        return
    try:
        major = (cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise Refused(f"{cluster} is not a database of PostgreSQL: move it away, then try again.") from None
    if major != MAJOR:
        raise Refused(
            f"The database in {cluster} was made by PostgreSQL {major} and this is {MAJOR}: "
            f"dump it with {major} and load it anew, or choose another folder with GRISTMILL_DATA."
        )


@contextmanager
def open_log(path: Path, owner: SystemUser | None) -> Generator[TextIO]:
    if path.exists() and path.stat().st_size > LARGEST_LOG:
        path.replace(path.with_name(path.name + ".1"))
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "a") as file:
        if owner:
            os.fchown(handle, owner.uid, owner.gid)
        yield file


def read_log_from(log: Path, begin: int) -> str:
    with log.open(errors="replace") as file:
        file.seek(begin)
        return file.read()


def failure(what: str, text: str, data: Path, log: Path) -> Refused:
    """An error with the one line of the server's message that names the cause."""
    if "No space left on device" in text:
        return disk_full(data)
    if IN_USE in text:
        return Refused(
            f"Processes of the killed server in {data} are still at work: "
            "wait until they have ended, or end them, then try again."
        )
    complaint = re.search(r"(?:FATAL|PANIC|error):\s*(.+)", text) or re.search(r"(.+)", text)
    reason = complaint[1].strip() if complaint else "it gave no reason"
    if mistake := re.search(r"LOG:\s*(.+)", text) if "contains errors" in reason else None:
        reason = mistake[1].strip()  # the line in the configuration that is wrong
    return Refused(f"PostgreSQL {what} ({reason}): see {log}.")


def disk_full(data: Path) -> Refused:
    return Refused(f"The disk of {data} is full: free some space, then try again.")


@contextmanager
def explain_errors(data: Path) -> Generator[None]:
    """Turns errors of the system about the data folder into one sentence that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full(data) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise Refused(
                f"The data folder {data} cannot be written by {user_name(os.geteuid())}: "
                "give that user the folder or choose another with GRISTMILL_DATA."
            ) from error
        reason = error.strerror or str(error)
        raise Refused(
            f"The data folder {data} cannot be used ({reason}): choose another with GRISTMILL_DATA."
        ) from error
    except psycopg.OperationalError as error:
        reason = str(error).strip().splitlines()[-1]
        raise Refused(f"PostgreSQL in {data} runs but does not let us in ({reason}): see its postgres.log.") from error


@contextmanager
def lock_folder(data: Path) -> Generator[None]:
    """Lets one process at a time start or stop the server; the system releases the lock when that process dies."""
    handle = os.open(data / LOCK, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if not wait_until(OTHERS, lambda: _try_lock(handle)):
            raise Refused(
                f"The data folder {data} is in use: another program has been starting or stopping its database for "
                f"{OTHERS:g} s; wait for it, end it, or choose another folder with GRISTMILL_DATA."
            )
        yield
    finally:
        os.close(handle)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def wait_until(seconds: float, done: Callable[[], bool]) -> bool:
    """Waits at most so many seconds; returns whether it was done in time."""
    deadline = monotonic() + seconds
    while not done():
        if monotonic() > deadline:
            return False
        Event().wait(0.01)
    return True


def size_of(folder: Path) -> int:
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):  # the server removes files as we look
                total += (Path(root) / name).lstat().st_size
    return total
