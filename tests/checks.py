"""Runs every check at once (`make test`), or those of one room (`make test-ROOM`), and says which failed.

The checks that need no database run beside pytest: on two cores the type checker alone would keep one of them idle.
Each is shown as one piece when it ends; pytest is seen while it runs. The server of somebody else
comes last, for it is tried by the same tests.

A few tests that failed run once more, alone: thousands of tests share two cores with servers that are killed, and a
test that passes by itself tells of the crowd. Its name is printed, as UNSTEADY: it has to be mended all the same.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
BIN = Path(sys.executable).parent
SRC = ROOT / "src" / "gristmill"
TESTS = ROOT / "tests"
RULES = TESTS / "test_rules.py"
FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
# one more than there are cores: some tests wait, but each process imports everything and may load models of its own
PROCESSES = str((os.cpu_count() or 1) + 1)
MOST_UNSTEADY = 3  # more failures than these are no accident


@dataclass
class Check:
    """A command that runs, and where its words are kept until it ends."""

    name: str
    command: list[str | Path]
    words: IO[bytes] | None = None
    began: float = field(default_factory=time.monotonic)
    process: subprocess.Popen[bytes] = field(init=False)

    def __post_init__(self) -> None:
        path = os.pathsep.join(filter(None, (str(ROOT / "src"), os.environ.get("PYTHONPATH"))))
        env = {**os.environ, "PYTHONPATH": path}
        self.process = subprocess.Popen(self.command, cwd=ROOT, env=env, stdout=self.words, stderr=self.words)

    def wait(self) -> "Ended":
        """How it ended; what it said is shown now, if it was kept."""
        code = self.process.wait()
        ended = Ended(self.name, code, time.monotonic() - self.began)
        if self.words is not None:
            self.words.seek(0)
            said = self.words.read().decode(errors="replace").strip()
            sys.stdout.write(f"\n--- {self.name}\n{said}\n")
            sys.stdout.flush()
        return ended


@dataclass(frozen=True)
class Ended:
    name: str
    code: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.name} {'passed' if self.code == 0 else f'FAILED ({self.code})'} in {self.seconds:.0f} s"


def main() -> int:
    # a polite end ends the checks, too; what a shell starts in the background ignores SIGINT, unless it is told not to
    for end in (signal.SIGTERM, signal.SIGINT):
        signal.signal(end, signal.default_int_handler)
    room = orders().room
    if room and not tests_of(room):
        sys.stderr.write(f"There is no room “{room}”: neither tests/{room} nor tests/test_{room}.py is here.\n")
        return 2
    try:
        left_out = provide_outsiders(room) + provide_description(room)
        ended = list(run_checks(room))
    except KeyboardInterrupt:
        return 130
    sys.stdout.write("\n".join(["---", *map(str, ended), *left_out]) + "\n")
    return 1 if any(one.code for one in ended) else 0


@dataclass(frozen=True)
class Outsider:
    """A program of Debian that some tests need. `make test` installs it where it may, or leaves these tests out."""

    room: str
    programs: tuple[str, ...]  # any of them
    packages: tuple[str, ...]
    tests: str
    is_service: bool = False  # installing it starts it, where a system manager runs

    @property
    def is_there(self) -> bool:
        return any(map(shutil.which, (*self.programs, *(f"/usr/sbin/{one}" for one in self.programs))))

    @property
    def may_be_installed(self) -> bool:
        has_manager = Path("/run/systemd/system").exists()
        return os.geteuid() == 0 and Path("/etc/debian_version").exists() and not (self.is_service and has_manager)


BROWSER = os.environ.get("GRISTMILL_CHROMIUM", "chromium")
OUTSIDERS = (
    Outsider("web", (BROWSER, "chromium-browser"), ("chromium",), "the browser tests of the console"),
    Outsider("sources", ("dovecot",), ("dovecot-imapd", "dovecot-pop3d"), "the tests of mailboxes", is_service=True),
    Outsider("agents", ("bwrap",), ("bubblewrap",), "the tests of the sandbox"),
)


def provide_outsiders(room: str | None) -> list[str]:
    """Install what is missing and may be installed; a sentence for each that is left out."""
    wanted = [one for one in OUTSIDERS if room in (None, one.room)]
    missing = [package for one in wanted if not one.is_there and one.may_be_installed for package in one.packages]
    if missing and shutil.which("apt-get"):
        sys.stdout.write(f"Installing {', '.join(missing)} for the tests (once) …\n")
        sys.stdout.flush()
        env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", *missing]):
            subprocess.run(["apt-get", *words], env=env, stdout=subprocess.DEVNULL, check=False)
    return [
        f"{one.tests} were LEFT OUT: apt-get install {' '.join(one.packages)}" for one in wanted if not one.is_there
    ]


# what GitHub says about its own answers, for tests/sources/test_shapes.py; one file of a large package
DESCRIPTION = BIN.parent / "openapi" / "api.github.com.json"
PACKAGE = "@octokit/openapi@23.0.2"


def provide_description(room: str | None) -> list[str]:
    """Fetch the description of GitHub's API from npm, once; a sentence if it is left out."""
    if room not in (None, "sources") or DESCRIPTION.exists():
        return []
    if npm := shutil.which("npm"):
        with tempfile.TemporaryDirectory() as folder:
            words = [npm, "pack", "--silent", "--pack-destination", folder, PACKAGE]
            subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
            for archive in Path(folder).glob("*.tgz"):
                unpack_description(archive)
    if DESCRIPTION.exists():
        return []
    return [f"the comparison with GitHub's description was LEFT OUT: npm pack {PACKAGE}, as tests/checks.py does"]


def unpack_description(archive: Path) -> None:
    DESCRIPTION.parent.mkdir(exist_ok=True)
    with tarfile.open(archive) as files, suppress(KeyError):
        file = files.extractfile(f"package/generated/{DESCRIPTION.name}")
        if file is not None:
            unfinished = DESCRIPTION.with_suffix(".unfinished")
            unfinished.write_bytes(file.read())
            unfinished.rename(DESCRIPTION)


def orders() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("room", nargs="?", help="only what this room needs, without the tests that are marked as slow")
    return parser.parse_args()


def run_checks(room: str | None) -> Iterator[Ended]:
    quiet = {
        "ruff check": [BIN / "ruff", "check", "."],
        "ruff format": [BIN / "ruff", "format", "--check", "."],
        "imports": [BIN / "lint-imports", "--no-cache"],
        "types": [BIN / "basedpyright", "--warnings", *typed_of(room)],
    }
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as threads, ended_at_last() as running:
        for number, (name, command) in enumerate(quiet.items()):
            running.append(Check(name, command, (Path(folder) / str(number)).open("w+b")))
        running.append(Check("pytest", [sys.executable, "-m", "pytest", "-q", "-n", PROCESSES, *pytest_of(room)]))
        for ended in threads.map(Check.wait, list(running)):
            yield look_again(running, ended) if ended.name == "pytest" and ended.code == 1 else ended
        if room is None:
            running.append(Check("external", [sys.executable, TESTS / "external.py"]))
            yield running[-1].wait()


def look_again(running: list[Check], first: Ended) -> Ended:
    """Run the few tests that failed once more, alone, and say which of them are unsteady."""
    failed: list[str] = list(json.loads(FAILED.read_text())) if FAILED.exists() else []
    if not 0 < len(failed) <= MOST_UNSTEADY:
        return first
    running.append(Check("pytest", [sys.executable, "-m", "pytest", "-q", *failed]))
    second = running[-1].wait()
    names = f"pytest, at the second try (UNSTEADY: {', '.join(failed)})"
    return Ended(first.name if second.code else names, second.code, first.seconds + second.seconds)


@contextmanager
def ended_at_last() -> Iterator[list[Check]]:
    """Checks that are ended, and waited for, when something goes wrong before they end by themselves."""
    running: list[Check] = []
    try:
        yield running
    finally:
        for check in running:
            if check.process.poll() is None:
                check.process.send_signal(signal.SIGINT)
        for check in running:
            check.process.wait()
            if check.words is not None:
                check.words.close()


def tests_of(room: str) -> list[Path]:
    return [path for path in (TESTS / room, TESTS / f"test_{room}.py") if path.exists()]


def typed_of(room: str | None) -> list[Path]:
    """What the type checker reads; it follows imports by itself."""
    return [path for path in (SRC / room, SRC / f"{room}.py") if path.exists()] if room else []


def pytest_of(room: str | None) -> list[str | Path]:
    return ["-m", "not slow", *tests_of(room), RULES] if room else []


if __name__ == "__main__":
    sys.exit(main())
