"""Tries the queue on somebody else's PostgreSQL: an older major, over TCP, with a password (`make external`).

A script, for pytest itself is told by GRISTMILL_TEST_DATABASE_URL where the server is. The server is PostgreSQL 16
of the wheel, in a folder that is gone afterwards; `GRISTMILL_EXTERNAL_URL` names one that is there already, whose
user may create databases and whose pgvector is installed.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from conftest import HASTY, place
from gristmill.db.accounts import SystemUser, account_of, own_folder, run_as, write_as
from gristmill.db.programs import programs_for

MAJOR = "16"
QUEUE = Path(__file__).parent / "queue"
# they ask no database, or take long and ask nothing of it that the others do not
LEFT_OUT = {
    "batches",
    "cron",
    "fingerprint",
    "lane_marks",
    "model",
    "rates",
    "retry",
    "threads",
    "worker",
    "workload",
}
QUICK = " ".join(f"-c {name}={value}" for name, value in {**HASTY, "max_connections": "200"}.items())


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # what ends us politely also stops the server
    given = os.environ.get("GRISTMILL_EXTERNAL_URL")
    try:
        if given:
            return tested(given)
        with server() as url:
            return tested(url)
    except KeyboardInterrupt:
        return 130


def tested(url: str) -> int:
    files = [file for file in sorted(QUEUE.rglob("test_*.py")) if file.stem.removeprefix("test_") not in LEFT_OUT]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "4", *map(str, files)]
    return subprocess.run(command, env=os.environ | {"GRISTMILL_TEST_DATABASE_URL": url}, check=False).returncode


@contextmanager
def server() -> Iterator[str]:
    """The URL of a server that knows nothing of us but a name and a password."""
    folder = Path(tempfile.mkdtemp(prefix="gristmill-external-", dir=place()))
    folder.chmod(0o711)
    owner = account_of(folder / "postgres")
    try:
        programs = programs_for(owner, folder, MAJOR)
        password = secrets.token_hex(16)
        initialise(programs, folder, owner, password)
        try:
            port = start(programs, folder, owner)
            yield f"postgresql://somebody:{password}@127.0.0.1:{port}/postgres"
        finally:
            run_as(owner, [programs / "pg_ctl", "stop", "-s", "-m", "immediate", "-D", folder / "postgres"])
    finally:
        shutil.rmtree(folder)


def initialise(programs: Path, folder: Path, owner: SystemUser | None, password: str) -> None:
    own_folder(folder / "postgres", owner)
    own_folder(folder / "run", owner)
    secret = folder / "run/password"
    write_as(owner, secret, password)
    access = ("-U", "somebody", "-A", "scram-sha-256", f"--pwfile={secret}")
    done(owner, [programs / "initdb", "-N", "-E", "UTF8", "--locale=C", *access, "-D", folder / "postgres"])


def start(programs: Path, folder: Path, owner: SystemUser | None) -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    options = f"{QUICK} -c listen_addresses=127.0.0.1 -p {port} -k ''"
    log = folder / "run/log"
    done(owner, [programs / "pg_ctl", "start", "-s", "-w", "-l", log, "-o", options, "-D", folder / "postgres"], log)
    return port


def done(owner: SystemUser | None, command: list[str | Path], log: Path | None = None) -> None:
    ended = run_as(owner, command)
    if ended.returncode:
        said = log.read_text() if log and log.exists() else ended.stderr
        sys.exit(f"{Path(command[0]).name} failed: {said}")


if __name__ == "__main__":
    sys.exit(main())
