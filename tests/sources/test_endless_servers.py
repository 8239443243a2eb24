"""Servers that never come to an end: each call is given up in time, and before it fills memory or disk."""

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest

from gristmill.errors import GristmillError, Permanent, Transient
from gristmill.sources.git.program import Git
from gristmill.sources.mail import bounded
from gristmill.sources.mail.imap import ImapOptions, Mailbox
from gristmill.sources.mail.pop3 import Maildrop, Pop3Options

Talk = Callable[[socket.socket], None]
MEGABYTE = 1 << 20


@contextmanager
def a_server(talk: Talk) -> Iterator[int]:
    """Talks to one client after the other, in a thread; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                with closing(client):
                    try:
                        talk(client)
                    except OSError:
                        continue

        threading.Thread(target=serve, daemon=True).start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)


def drip(client: socket.socket) -> None:
    """A byte now and then, for ever: whoever waits for the next byte alone waits for ever."""
    while True:
        client.sendall(b"*")
        threading.Event().wait(0.01)


def flood(client: socket.socket, line: bytes) -> None:
    while True:
        client.sendall(line * 1_000)


def sign_in_by_imap(then: Talk) -> Talk:
    def talk(client: socket.socket) -> None:
        lines = client.makefile("rb")
        client.sendall(b"* OK ready\r\n")
        for line in lines:
            tag, word = line.split()[:2]
            if word == b"CAPABILITY":
                client.sendall(b"* CAPABILITY IMAP4rev1\r\n" + tag + b" OK done\r\n")
            elif word == b"LOGIN":
                client.sendall(tag + b" OK [CAPABILITY IMAP4rev1] in\r\n")
            else:
                then(client)

    return talk


def sign_in_by_pop3(then: Talk) -> Talk:
    def talk(client: socket.socket) -> None:
        lines = client.makefile("rb")
        client.sendall(b"+OK ready\r\n")
        for line in lines:
            if line.split()[0] in (b"USER", b"PASS"):
                client.sendall(b"+OK\r\n")
            else:
                then(client)

    return talk


def open_imap(port: int) -> Mailbox:
    options = ImapOptions(host="127.0.0.1", port=port, security="none", user="x", password="env:X")  # pyright: ignore
    return Mailbox(options, "secret", MEGABYTE)


def open_pop3(port: int) -> Maildrop:
    options = Pop3Options(host="127.0.0.1", port=port, security="none", user="x", password="env:X")  # pyright: ignore
    return Maildrop(options, "secret", MEGABYTE)


@pytest.fixture
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits are those of a test; what is asked for is that there are any."""
    monkeypatch.setattr(bounded.Allowance.__init__, "__defaults__", (0.3,))
    monkeypatch.setattr(bounded.Allowance.renew, "__defaults__", (0.3,))


@pytest.mark.usefixtures("hurry")
@pytest.mark.parametrize("connect", [open_imap, open_pop3])
def test_a_greeting_that_drips_for_ever_is_not_waited_for(connect: Callable[[int], object]) -> None:
    with a_server(drip) as port, pytest.raises(Transient):
        connect(port)


@pytest.mark.usefixtures("hurry")
def test_an_answer_that_drips_for_ever_is_not_waited_for() -> None:
    with a_server(sign_in_by_imap(drip)) as port:
        mailbox = open_imap(port)
        with pytest.raises(Transient):
            mailbox.list_folders()
        mailbox.abort()
    with a_server(sign_in_by_pop3(drip)) as port:
        maildrop = open_pop3(port)
        with pytest.raises(GristmillError):
            maildrop.list_mails()
        maildrop.abort()


def test_an_answer_without_end_does_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("imap", "pop3"):
        monkeypatch.setattr(f"gristmill.sources.mail.{module}.MOST_AROUND", MEGABYTE)
    with a_server(sign_in_by_imap(lambda client: flood(client, b"* SEARCH 1 2 3\r\n"))) as port:
        mailbox = open_imap(port)
        with pytest.raises(Transient):
            mailbox.find_uids()
        mailbox.abort()
    with a_server(sign_in_by_pop3(lambda client: flood(client, b"+OK 1 x\r\n"))) as port:
        maildrop = open_pop3(port)
        with pytest.raises(Transient):
            maildrop.list_mails()
        maildrop.abort()


def test_a_mail_that_is_announced_as_larger_than_memory_is_refused_before_it_comes() -> None:
    answer = b"* 1 FETCH (UID 1 BODY[] {99999999999}\r\n"
    with a_server(sign_in_by_imap(lambda client: client.sendall(answer))) as port:
        mailbox = open_imap(port)
        with pytest.raises(Transient):
            mailbox.fetch_mails([1])
        mailbox.abort()


def a_false_git(folder: Path, script: str) -> None:
    """A program of this name that does what a server, through git, could make it do."""
    program = folder / "git"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def has_ended(pid: int) -> bool:
    """Within ten seconds; whoever adopted it may not have asked for its end yet."""
    try:
        process = psutil.Process(pid)
        return process.status() == psutil.STATUS_ZOMBIE or process.wait(10) is None
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return process.status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return folder


async def test_a_git_that_hangs_ends_in_time_with_all_that_it_started(programs: Path, tmp_path: Path) -> None:
    a_false_git(programs, f"sleep 1000 & echo $! > {tmp_path}/inner; wait")
    with pytest.raises(Transient, match="did not end"):
        await Git(tmp_path).run("fetch", patience=0.5)
    assert await asyncio.to_thread(has_ended, int((tmp_path / "inner").read_text()))


async def test_a_git_that_talks_for_ever_is_ended(programs: Path, tmp_path: Path) -> None:
    a_false_git(programs, "yes")
    with pytest.raises(Permanent, match="too large"):
        await Git(tmp_path).run("log", most=MEGABYTE)
    with pytest.raises(Transient, match="did not end"):
        async for _ in Git(tmp_path).stream("log", patience=0.3):
            pass


async def test_a_git_that_complains_for_ever_is_ended_and_its_last_words_are_kept(
    programs: Path, tmp_path: Path
) -> None:
    a_false_git(programs, "yes no >&2")
    with pytest.raises(Transient, match="did not end"):
        await Git(tmp_path).run("fetch", patience=0.5)
    a_false_git(programs, "head -c 3000000 /dev/zero | tr '\\0' x >&2; echo >&2; echo 'fatal: the end' >&2; exit 1")
    with pytest.raises(Transient, match="fatal: the end"):
        await Git(tmp_path).run("fetch")


async def test_a_fetch_that_brings_without_end_does_not_fill_the_disk(programs: Path, tmp_path: Path) -> None:
    a_false_git(programs, f"exec cat /dev/zero > {tmp_path}/pack")
    with pytest.raises(GristmillError):
        await Git(tmp_path, most_bytes=MEGABYTE).run("fetch")
    assert (tmp_path / "pack").stat().st_size <= MEGABYTE
