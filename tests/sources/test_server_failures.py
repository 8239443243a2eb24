"""What people read where a mail or calendar server fails: a plain sentence with its place and its own words."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from farm import a_farm

from gristmill.db import Database
from gristmill.sources.failures import LONGEST, explain_failure, name_place, say

GARBAGE = bytes(range(128, 256)) * 40


@asynccontextmanager
async def a_server(*answers: bytes) -> AsyncGenerator[int]:
    """Says these, one after each line that it is told, and then closes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for n, answer in enumerate(answers):
            line = b"" if n == 0 else await reader.readline()
            writer.write(answer.replace(b"TAG", line.split(b" ")[0]))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


GREETS = b"* OK ready\r\n"
CAN = b"* CAPABILITY IMAP4rev1 AUTH=PLAIN\r\nTAG OK done\r\n"
REFUSES = b"TAG NO [AUTHENTICATIONFAILED] Authentication failed.\r\n"
LETS_NOBODY_IN = "does not let us in: [AUTHENTICATIONFAILED] Authentication failed."
NO_SERVER = "does not answer as a server of this kind"


@pytest.mark.parametrize(
    ("kind", "answers", "says"),
    [
        ("imap", (GREETS, CAN, REFUSES), LETS_NOBODY_IN),
        ("imap", (b"+OK POP3 ready\r\n",), f"{NO_SERVER}."),
        ("imap", (b"HTTP/1.1 400 Bad Request\r\n",), f"{NO_SERVER}: unexpected response: HTTP/1.1 400 Bad Request."),
        ("imap", (b"",), "broke off the connection."),
        ("imap", (GARBAGE + b"\r\n",), f"{NO_SERVER}."),
        ("pop3", (b"+OK\r\n", b"+OK\r\n", b"-ERR [AUTH] No.\r\n"), "does not let us in: -ERR [AUTH] No."),
        ("pop3", (b"* OK [CAPABILITY IMAP4rev1] ready\r\n",), f"{NO_SERVER}: * OK [CAPABILITY IMAP4rev1] ready."),
        ("pop3", (b"",), "broke off the connection."),
        ("pop3", (GARBAGE + b"\r\n",), f"{NO_SERVER}."),
        ("pop3", (b"* " + b"word " * 400 + b"\r\n",), f"{NO_SERVER}: * word word"),
        ("caldav", (GARBAGE + b"\r\n\r\n",), "does not answer as a web server does: check its address and port."),
        ("caldav", (b"",), "broke off the connection."),
        ("caldav", (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nx",), "broke off in the middle of its answer."),
    ],
)
async def test_a_failing_server_is_told_of_in_one_sentence(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, answers: tuple[bytes, ...], says: str
) -> None:
    async with a_server(*answers) as port:
        error = await poll_once(db, tmp_path, monkeypatch, kind, port)
    assert error.startswith(f"127.0.0.1:{port} {says}")
    assert len(error) <= LONGEST
    assert "b'" not in error


@pytest.mark.parametrize("kind", ["imap", "pop3", "caldav"])
async def test_a_port_where_nobody_listens_is_named(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        error = await poll_once(db, tmp_path, monkeypatch, kind, port)
    assert error == f"127.0.0.1:{port} cannot be reached: Connection refused."


async def poll_once(db: Database, folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str, port: int) -> str:
    monkeypatch.setenv("MAIL_PASSWORD", "secret-word")
    options: dict[str, Any] = {"host": "127.0.0.1", "port": port, "security": "none"}
    if kind == "caldav":
        options = {"url": f"http://127.0.0.1:{port}/cal/"}
    async with a_farm(db, folder) as farm:
        source = await farm.add(kind, user="anna", password="env:MAIL_PASSWORD", **options)
        await farm.work()
        looked = await farm.look(source)
    assert "secret-word" not in str(looked.error)
    return str(looked.error)


async def test_a_secret_that_the_workers_lack_is_missed_where_they_run(db: Database, tmp_path: Path) -> None:
    async with a_farm(db, tmp_path) as farm:
        source = await farm.add("imap", user="anna", password="env:NOT_THERE", host="127.0.0.1", port=9)
        await farm.work()
        looked = await farm.look(source)
    assert looked.error == (
        "There is no secret at env:NOT_THERE in the environment of the workers (gristmill up): "
        "set it there and start them again."
    )


def test_what_a_server_says_is_shown_as_people_read_it() -> None:
    assert say("x refuses", b"Zu viele Anfragen \xc3\xbc\r\n") == "x refuses: Zu viele Anfragen ü."
    assert say("x refuses", "b'[LIMIT] it\\'s enough.'") == "x refuses: [LIMIT] it's enough."
    assert say("x refuses", "unexpected response: b'\\xaa\\xbb\\xcc\\xdd'") != ""
    assert say("x refuses", "b'broken") == "x refuses: b'broken."
    assert name_place("::1", 993) == "[::1]:993"


def test_a_name_that_nobody_knows_and_a_silent_server() -> None:
    error = socket.gaierror(-2, "Name or service not known")
    assert explain_failure("a.test:993", error) == "a.test:993 cannot be reached: Name or service not known."
    assert explain_failure("a.test:993", TimeoutError()) == "a.test:993 did not answer in time."
