"""A real CalDAV server for tests: Radicale on loopback, with a folder of its own."""

import base64
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dovecot import free_port

PASSWORD = "milling"


class Radicale:
    """One user with as many calendars as tests ask for."""

    def __init__(self, folder: Path) -> None:
        self.port = free_port()
        (folder / "users").write_text(f"anna:{PASSWORD}\n")
        options = [f"--server-hosts=127.0.0.1:{self.port}", "--auth-type=htpasswd"]
        options += [f"--auth-htpasswd-filename={folder / 'users'}", "--auth-htpasswd-encryption=plain"]
        options += [f"--storage-filesystem-folder={folder / 'store'}", "--auth-delay=0"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "radicale", "--config", "", *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def place(self, calendar: str) -> str:
        return f"http://127.0.0.1:{self.port}/anna/{calendar}/"

    def make(self, calendar: str) -> str:
        """A new calendar; its address."""
        self.call("MKCALENDAR", calendar)
        return self.place(calendar)

    def call(self, method: str, calendar: str, path: str = "", body: str = "") -> None:
        key = base64.b64encode(f"anna:{PASSWORD}".encode()).decode()
        request = urllib.request.Request(self.place(calendar) + path, body.encode() or None, method=method)
        request.add_header("Authorization", f"Basic {key}")
        request.add_header("Content-Type", "text/calendar")
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()

    def start(self) -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                self.make("first")
            except OSError:
                assert time.monotonic() < deadline
                assert self.process.poll() is None
                time.sleep(0.1)
            else:
                return


@contextmanager
def a_radicale() -> Generator[Radicale]:
    with tempfile.TemporaryDirectory() as folder:
        server = Radicale(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.process.terminate()
            server.process.wait()
