"""Sets the stage: one server, a fresh database for each measurement, workers that wait to be released."""

import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from threading import Timer
from time import perf_counter, sleep
from types import FrameType
from typing import Self

import psycopg
from bench.board import Board
from bench.contenders import Contender

from gristmill.db.embedded import ADMIN, USER, Embedded

ROOT = Path(__file__).resolve().parent.parent
START = 30.0  # seconds a process may take until it says that it is ready
LONGEST = 240.0  # seconds any single step may take
LOOK = 0.002  # seconds between two looks


class NotMeasuredError(Exception):
    """Why a figure is missing."""


class Process:
    """One process of a contender; it runs in a session of its own and ends with us."""

    def __init__(self, log: Path, module: str, *arguments: str) -> None:
        self._log = log
        with log.open("w") as errors:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                cwd=ROOT,
                text=True,
                bufsize=1,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )

    def until_ready(self) -> None:
        if self.line() != "ready":
            raise NotMeasuredError(self.complaint())

    def line(self, timeout: float = START) -> str:
        """The next line it prints; empty when it ended, or was ended because it took too long."""
        assert self._popen.stdout
        timer = Timer(timeout, self._popen.kill)
        timer.start()
        try:
            return self._popen.stdout.readline().strip()
        finally:
            timer.cancel()

    def release(self, word: str = "go") -> None:
        assert self._popen.stdin
        with suppress(BrokenPipeError):  # that it ended is found by whoever looks next
            self._popen.stdin.write(word + "\n")
            self._popen.stdin.flush()

    def check(self) -> None:
        if self._popen.poll() is not None:
            raise NotMeasuredError(f"a worker ended: {self.complaint()}")

    def finished(self, timeout: float) -> str:
        try:
            said, _ = self._popen.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise NotMeasuredError(f"took more than {timeout:.0f} s") from None
        if self._popen.returncode:
            raise NotMeasuredError(self.complaint())
        return said.strip()

    def complaint(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(1)
        lines = self._log.read_text().replace(f"{ROOT}/", "").strip().splitlines()
        return lines[-1].strip() if lines else f"it ended with {self._popen.returncode}"

    def end(self) -> None:
        if self._popen.poll() is None:
            self._popen.terminate()
            try:
                self._popen.wait(3)
            except subprocess.TimeoutExpired:
                self._popen.kill()
                self._popen.wait(5)
        for pipe in (self._popen.stdin, self._popen.stdout):
            with suppress(OSError):
                assert pipe
                pipe.close()


class Workers:
    """The workers of one contender, ready and waiting."""

    def __init__(self, processes: list[Process], board: Board) -> None:
        self.processes = processes
        self.board = board

    def release(self) -> float:
        for process in self.processes:
            process.release()
        return perf_counter()

    def handled(self, jobs: int, timeout: float = LONGEST) -> None:
        """Wait until that many handlers have run."""
        deadline = perf_counter() + timeout
        while (ran := self.board.total()) < jobs:
            self._look(deadline, f"{ran:,} of {jobs:,} jobs ran within {timeout:.0f} s")

    def rate(self, seconds: float) -> float:
        """Handlers per second over the next so many seconds."""
        first, begin = self.board.total(), perf_counter()
        while perf_counter() - begin < seconds:
            self._look(begin + seconds + 1, "")
        return (self.board.total() - first) / (perf_counter() - begin)

    def _look(self, deadline: float, complaint: str) -> None:
        for process in self.processes:
            process.check()
        if perf_counter() > deadline:
            raise NotMeasuredError(complaint)
        sleep(LOOK)


class Stage:
    """The embedded server in a folder of its own; everything is gone afterwards, also on Ctrl-C."""

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        signal.signal(signal.SIGTERM, _interrupt)
        self._numbers = count()
        self._folder = Path(tempfile.mkdtemp(prefix="gristmill-bench-"))
        self._stack.callback(shutil.rmtree, self._folder, ignore_errors=True)
        data = Path(tempfile.mkdtemp(prefix="gristmill-bench-data-"))
        self._stack.callback(shutil.rmtree, data, ignore_errors=True)
        self.server = Embedded(data)
        self._stack.callback(self.server.stop, "immediate")
        self.server.start()
        self._admin = psycopg.connect(self.server.url("postgres", ADMIN), autocommit=True)
        self._stack.callback(self._admin.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def database(self, contender: Contender) -> Iterator[str]:
        """An empty database with the contender's tables, dropped afterwards."""
        name = f"{contender.key}_{next(self._numbers)}"
        self._admin.execute(f'CREATE DATABASE "{name}" OWNER {USER}')
        with psycopg.connect(self.server.url(name, ADMIN), autocommit=True) as inside:
            inside.execute("CREATE EXTENSION vector")
        url = self.server.url(name)
        try:
            self.run(contender, "install", url)
            yield url
        finally:
            self._admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')

    @contextmanager
    def workers(self, contender: Contender, url: str, processes: int = 2) -> Iterator[Workers]:
        board = Board(self._folder / f"board-{next(self._numbers)}")
        with ExitStack() as stack:
            started = [
                stack.enter_context(self.process(contender, "work", url, str(board.path), str(slot)))
                for slot in range(processes)
            ]
            for process in started:
                process.until_ready()
            yield Workers(started, board)

    @contextmanager
    def process(self, contender: Contender, *arguments: str) -> Iterator[Process]:
        process = Process(self._folder / f"log-{next(self._numbers)}", contender.module, *arguments)
        try:
            yield process
        finally:
            process.end()

    def run(self, contender: Contender, *arguments: str) -> str:
        """Run a command of the contender to its end; what it printed."""
        with self.process(contender, *arguments) as process:
            return process.finished(LONGEST)

    def load(self, contender: Contender, url: str, jobs: int, processes: int = 2) -> None:
        """Enqueue by two processes, as nobody measures this."""
        share, rest = divmod(jobs, processes)
        with ExitStack() as stack:
            started = [
                stack.enter_context(self.process(contender, "load", url, str(share + (slot < rest))))
                for slot in range(processes)
            ]
            for process in started:
                process.finished(LONGEST)

    def calm(self, url: str) -> None:
        """The same start for everybody: fresh statistics.

        No checkpoint: right after one, the first touch of every old page is logged whole, which would charge whoever
        works on a long line, and only them, for what a checkpoint costs.
        """
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("VACUUM (ANALYZE)")

    def emptied(self, contender: Contender, url: str, timeout: float = 60.0) -> float:
        """The moment when the contender's tables say that every job is done."""
        deadline = perf_counter() + timeout
        with psycopg.connect(url, autocommit=True) as connection:
            while connection.execute(contender.open).fetchone() != (False,):
                if perf_counter() > deadline:
                    raise NotMeasuredError(f"jobs were left {timeout:.0f} s after the last handler ran")
                sleep(LOOK)
        return perf_counter()

    def ask(self, url: str, query: str) -> object:
        with psycopg.connect(url, autocommit=True) as connection:
            row = connection.execute(query).fetchone()
        return row[0] if row else None


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
