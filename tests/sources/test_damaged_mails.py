"""A mail or a folder that its server does not give: it is set aside alone, and keeps no other away."""

import asyncio
import poplib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from dovecot import PASSWORD, Dovecot
from farm import Farm, a_farm
from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientError
from worlds import MailServerWorld

from gristmill.db import Database
from gristmill.queue import Done, Snooze
from gristmill.sources.kinds import KINDS
from gristmill.sources.mail.index import is_sent_folder

MAILS = 12


@pytest.fixture
async def farm(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Farm]:
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    async with a_farm(db, tmp_path) as opened:
        yield opened


@pytest.fixture(params=["imap", "pop3"])
def box(request: pytest.FixtureRequest, dovecot: Dovecot) -> MailServerWorld:
    return MailServerWorld(dovecot, request.param, getattr(dovecot, request.param))


@pytest.fixture
def imap(dovecot: Dovecot) -> MailServerWorld:
    return MailServerWorld(dovecot, "imap", dovecot.imap)


def damage(patch: pytest.MonkeyPatch, damaged: Sequence[int]) -> None:
    """Both servers refuse these mails, as they do whose files are broken."""
    retr, fetch = poplib.POP3.retr, IMAPClient.fetch

    def refuse_one(self: poplib.POP3, which: int) -> Any:
        if which in damaged:
            raise poplib.error_proto(b"-ERR [SYS/PERM] message is damaged")
        return retr(self, which)

    def refuse_all(self: IMAPClient, messages: Sequence[int], data: Sequence[str], *more: Any) -> Any:
        if data == ["BODY.PEEK[]"] and set(messages) & set(damaged):
            raise IMAPClientError("fetch failed: b'[SERVERBUG] Internal error occurred'")
        return fetch(self, messages, data, *more)

    patch.setattr(poplib.POP3, "retr", refuse_one)
    patch.setattr(IMAPClient, "fetch", refuse_all)


async def test_a_damaged_mail_is_set_aside_alone_and_tried_again_by_the_next_listing(
    farm: Farm, box: MailServerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(MAILS):
        await box.put(f"k{n}")
    with monkeypatch.context() as patch:
        damage(patch, [2, 7])
        source = await farm.add(box.kind.name, **box.options)
        await farm.work()
        states = [item.state for item in await farm.items(source)]
        assert (states.count("INDEXED"), states.count("SET_ASIDE")) == (MAILS - 2, 2)
        assert all("refuses" in item.error for item in await farm.items(source) if item.state == "SET_ASIDE")
        assert (await farm.look(source)).error is None
    await farm.compare(source)
    assert {item.state for item in await farm.items(source)} == {"INDEXED"}
    assert len(await farm.documents()) == MAILS


async def test_no_mail_is_set_aside_where_the_server_gives_none_at_all(
    farm: Farm, box: MailServerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(MAILS):
        await box.put(f"k{n}")
    source, hands = await farm.add(box.kind.name, **box.options), farm.by_hand(KINDS)
    with monkeypatch.context() as patch:
        damage(patch, range(MAILS + 1))
        assert isinstance(await hands.poll(source), Snooze)
    assert await farm.items(source) == []
    assert "None of 12 mails" in str((await farm.look(source)).error)
    assert isinstance(await hands.poll(source), Done)
    assert len(await farm.items(source)) == MAILS


def lock(patch: pytest.MonkeyPatch, said: str) -> None:
    """A folder that is listed, and that nobody can open."""
    select = IMAPClient.select_folder

    def refuse(self: IMAPClient, folder: str, *more: Any, **how: Any) -> Any:
        if folder == "Archive":
            raise IMAPClientError(f"select failed: {said}")
        return select(self, folder, *more, **how)

    patch.setattr(IMAPClient, "select_folder", refuse)


async def fill(box: MailServerWorld) -> None:
    with box.dovecot.client(box.user) as client:
        for name in ("Archive", "Zoo"):
            client.create_folder(name)
    for key, folder in (("a", "INBOX"), ("b", "Archive"), ("c", "Zoo")):
        mail = f"Message-ID: <{key}@acme.test>\r\nSubject: {key}\r\n\r\nHello.\r\n".encode()
        await asyncio.to_thread(box.append, mail, folder)


@pytest.mark.parametrize("said", ["[NOPERM] Permission denied", "[SERVERBUG] Internal error"])
async def test_a_folder_that_cannot_be_opened_is_told_and_keeps_no_other_away(
    farm: Farm, imap: MailServerWorld, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    await fill(imap)
    with monkeypatch.context() as patch:
        lock(patch, said)
        source = await farm.add("imap", **imap.options)
        await farm.work()
        states = {item.urn or item.external: item.state for item in await farm.items(source)}
        assert states == {
            "email::a@acme.test": "INDEXED",
            "email::c@acme.test": "INDEXED",
            "Archive;0;0": "SET_ASIDE",
        }
    await farm.poll(source)
    await farm.compare(source)
    left = {item.urn or item.external: item.state for item in await farm.items(source)}
    assert {name for name, state in left.items() if state == "INDEXED"} == {f"email::{key}@acme.test" for key in "abc"}
    assert left["Archive;0;0"] == "DELETED"


async def test_a_folder_that_fails_for_now_costs_none_of_its_mails(
    farm: Farm, imap: MailServerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(imap)
    source = await farm.add("imap", **imap.options)
    await farm.work()
    with monkeypatch.context() as patch:
        lock(patch, "[SERVERBUG] Internal error")
        assert isinstance(await farm.by_hand(KINDS).compare(source), Snooze)
    assert len(await farm.documents()) == 3


async def test_a_folder_without_uidvalidity_is_told_in_a_sentence(
    farm: Farm, imap: MailServerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(imap)
    select = IMAPClient.select_folder

    def forget(self: IMAPClient, folder: str, *more: Any, **how: Any) -> Any:
        found = dict(select(self, folder, *more, **how))
        if folder == "Archive":
            del found[b"UIDVALIDITY"]
        return found

    monkeypatch.setattr(IMAPClient, "select_folder", forget)
    source = await farm.add("imap", **imap.options)
    await farm.work()
    (aside,) = [item for item in await farm.items(source) if item.state == "SET_ASIDE"]
    assert "no lasting numbers (UIDVALIDITY)" in aside.error
    assert len(await farm.documents()) == 2


async def test_the_folder_of_sent_mails_is_known_by_its_flag_whatever_its_name(
    farm: Farm, imap: MailServerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(imap)
    listed = IMAPClient.list_folders

    def flag(self: IMAPClient, *more: Any) -> Any:
        found = listed(self, *more)
        return [((*flags, b"\\Sent"), by, name) if name == "Zoo" else (flags, by, name) for flags, by, name in found]

    monkeypatch.setattr(IMAPClient, "list_folders", flag)
    for number, folders in enumerate(("", "INBOX, Zoo")):
        source = await farm.add("imap", name=f"box{number}", **imap.options, folders=folders)
        await farm.work()
        assert [item.urn for item in await farm.items(source) if item.sent] == ["email::c@acme.test"]


@pytest.mark.parametrize(
    "name",
    ["Envoyés", "Enviados", "Posta inviata", "Verzonden items", "Wysłane", "[Gmail]/Messages envoyés", "INBOX.Sent"],
)
def test_the_folder_of_sent_mails_is_known_by_its_name_in_many_languages(name: str) -> None:
    assert is_sent_folder(name)


@pytest.mark.parametrize("name", ["INBOX", "Sentinel", "Archive", "INBOX.Sent.2024"])
def test_other_folders_are_not_taken_for_it(name: str) -> None:
    assert not is_sent_folder(name)
