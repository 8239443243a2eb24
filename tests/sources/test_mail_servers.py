"""Mailboxes of a real Dovecot: renumbered, sent, idle, large, closed; each mail once and none lost."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from dovecot import PASSWORD, Dovecot
from farm import Farm, a_farm, a_mail
from kills import Killed, KilledAt
from worlds import MailServerWorld

from gristmill.db import Database
from gristmill.errors import Permanent, Transient
from gristmill.sources.kinds import KINDS
from gristmill.sources.letters import ListenToSources
from gristmill.sources.mail.account import MailAccount, read_credential
from gristmill.sources.opening import Opener
from gristmill.sources.watching import Listener


@pytest.fixture
async def farm(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Farm]:
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    async with a_farm(db, tmp_path) as opened:
        yield opened


@pytest.fixture
def box(dovecot: Dovecot) -> MailServerWorld:
    return MailServerWorld(dovecot, "imap", dovecot.imap)


async def test_a_renumbered_mailbox_is_matched_by_message_id_nothing_twice_and_nothing_lost(
    farm: Farm, box: MailServerWorld
) -> None:
    for n in range(5):
        await box.put(f"k{n}")
    source = await farm.add("imap", **box.options)
    await farm.work()
    before = {item.urn: item.external for item in await farm.items(source)}
    box.dovecot.renumber(box.user)
    await box.put("came meanwhile".replace(" ", "-"))
    await farm.poll(source)
    after = {item.urn: item.external for item in await farm.items(source)}
    assert set(after) == {*before, "email::came-meanwhile@acme.test"}
    assert not set(after.values()) & set(before.values())
    assert {item.version for item in await farm.items(source)} == {1}
    await farm.compare(source)
    assert set((await farm.documents()).values()) == {1}
    assert len(await farm.documents()) == 6
    assert {item.state for item in await farm.items(source)} == {"INDEXED"}


async def test_a_mailbox_that_is_renumbered_amid_a_kill_has_every_mail_once(farm: Farm, box: MailServerWorld) -> None:
    for n in range(4):
        await box.put(f"k{n}")
    source = await farm.add("imap", **box.options)
    await farm.work()
    hands = farm.by_hand(KINDS)
    await box.put("new")
    for n in count(1, 3):  # what was fetched under one number, and not looked into yet, has another one after the next
        box.dovecot.renumber(box.user)
        with suppress(Killed):
            await KilledAt(n, hands.poll(source))
            break
    items = await farm.items(source)
    assert (len(items), {item.state for item in items}) == (5, {"INDEXED", "NEW"})
    await farm.poll(source)
    items = await farm.items(source)
    assert {item.urn for item in items} == {f"email::{key}@acme.test" for key in ("k0", "k1", "k2", "k3", "new")}
    assert (len(items), {item.state for item in items}) == (5, {"INDEXED"})
    await farm.compare(source)
    assert {item.state for item in await farm.items(source)} == {"INDEXED"}
    assert set((await farm.documents()).values()) == {1}


async def test_mails_that_we_sent_are_of_the_same_thread_and_the_trash_is_left_out(
    farm: Farm, box: MailServerWorld
) -> None:
    await box.put("question")
    answer = a_mail("answer", In_Reply_To="<question@acme.test>", Subject="Re: Subject question")
    again = a_mail("again", References="<question@acme.test> <answer@acme.test>")
    await asyncio.to_thread(box.append, answer, "Sent")
    await asyncio.to_thread(box.append, again)
    await asyncio.to_thread(box.append, a_mail("rubbish"), "Trash")
    source = await farm.add("imap", **box.options)
    await farm.work()
    items = {item.urn: item for item in await farm.items(source)}
    assert set(items) == {f"email::{key}@acme.test" for key in ("question", "answer", "again")}
    assert {urn for urn, item in items.items() if item.sent} == {"email::answer@acme.test"}
    assert {item.thread for item in items.values()} == {"again@acme.test"}


async def test_a_mail_in_two_folders_is_one_document_until_both_are_gone(farm: Farm, box: MailServerWorld) -> None:
    await box.put("one")
    await asyncio.to_thread(box.append, b"Received: from elsewhere\r\n" + a_mail("one"), "Sent")
    source = await farm.add("imap", **box.options)
    await farm.work()
    assert [item.state for item in await farm.items(source)] == ["INDEXED", "INDEXED"]
    assert await farm.documents() == {"email::one@acme.test": 1}
    await box.drop("one")
    await farm.compare(source)
    assert await farm.documents() == {"email::one@acme.test": 1}


@pytest.mark.parametrize("kind", ["imap", "pop3"])
async def test_another_mail_under_a_known_message_id_takes_nobodys_place(
    farm: Farm, dovecot: Dovecot, kind: str
) -> None:
    box = MailServerWorld(dovecot, kind, getattr(dovecot, kind))
    await box.put("one", "The true one.")
    await asyncio.to_thread(box.append, a_mail("one", "The forged one."))
    source = await farm.add(kind, **box.options)
    await farm.work()
    urns = sorted(await farm.documents())
    assert len(urns) == 2
    assert urns[1].startswith(f"{urns[0]}::")
    assert [item.state for item in await farm.items(source)] == ["INDEXED", "INDEXED"]


async def test_a_forged_mail_in_two_folders_is_one_document_and_a_renumbered_mailbox_changes_nothing(
    farm: Farm, box: MailServerWorld
) -> None:
    forged = a_mail("one", "The forged one.", In_Reply_To="<other@acme.test>")
    await box.put("one", "The true one.")
    await box.put("other")
    await asyncio.to_thread(box.append, forged)
    with box.dovecot.client(box.user) as client:
        client.create_folder("Old")
    await asyncio.to_thread(box.append, b"Received: from elsewhere\r\n" + forged, "Old")
    source = await farm.add("imap", **box.options)
    await farm.work()
    documents = await farm.documents()
    assert (len(documents), set(documents.values())) == (3, {1})
    threads = {item.thread for item in await farm.items(source)}
    assert len(threads) == 3, "the forged one joins no thread"
    box.dovecot.renumber(box.user)
    await farm.poll(source)
    await farm.compare(source)
    assert await farm.documents() == documents


async def test_a_wrong_password_is_told_without_it(
    farm: Farm, box: MailServerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAIL_PASSWORD", "wrong-secret")
    source = await farm.add("imap", **box.options)
    await farm.work()
    error = str((await farm.look(source)).error)
    assert error.startswith(f"127.0.0.1:{box.options['port']} does not let us in: [AUTHENTICATIONFAILED]")
    assert "wrong-secret" not in error


async def test_a_mail_that_is_too_large_is_set_aside_and_keeps_no_other_away(
    farm: Farm, box: MailServerWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    await box.put("small")
    await box.put("large", "x" * 5_000)
    await box.put("last")
    monkeypatch.setattr(Opener, "max_bytes", 2_000, raising=False)
    opener = Opener(farm.db, KINDS, farm.settings.data, 2_000)
    hands = farm.by_hand(KINDS)
    hands._poller = type(hands._poller)(opener, timedelta(minutes=1))  # pyright: ignore
    source = await farm.add("imap", **box.options)
    await hands.poll(source)
    states = [(item.state, item.error) for item in await farm.items(source)]
    assert [state for state, _ in states] == ["NEW", "SET_ASIDE", "NEW"]
    assert "more than the 2,000 of documents.max_bytes" in states[1][1]


async def test_a_server_that_tells_of_a_new_mail_has_the_mailbox_polled(farm: Farm, box: MailServerWorld) -> None:
    source = await farm.add("imap", **box.options)
    await farm.work()
    opener = Opener(farm.db, KINDS, farm.settings.data, 2_000)
    listening = asyncio.create_task(Listener(opener, timedelta(seconds=30)).listen(ListenToSources()))

    async def is_asked() -> list[Any]:
        return await farm.rows("SELECT 1 FROM task WHERE kind = 'sources.poll' AND outcome IS NULL")

    async with asyncio.timeout(25):
        while not await is_asked():
            await box.put("news")
            await asyncio.sleep(0.5)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
    await farm.work()
    assert "email::news@acme.test" in await farm.documents()
    assert (await farm.look(source)).failures == 0


async def test_a_long_line_of_one_mail_keeps_no_other_away(farm: Farm, dovecot: Dovecot) -> None:
    box = MailServerWorld(dovecot, "pop3", dovecot.pop3)
    await box.put("long", "x" * 100_000)
    await box.put("short")
    source = await farm.add("pop3", **box.options)
    await farm.work()
    assert set(await farm.documents()) == {"email::long@acme.test", "email::short@acme.test"}
    assert (await farm.look(source)).error is None


async def test_a_token_comes_from_a_program() -> None:
    account = MailAccount(host="localhost", user="anna", token_command="echo a-token")
    assert await read_credential(account) == "a-token"


async def test_a_program_that_makes_tokens_sees_no_secret_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISTMILL_KEY", "s3cret")
    account = MailAccount(host="localhost", user="anna", token_command="sh -c 'echo \"[$GRISTMILL_KEY]\"'")
    assert await read_credential(account) == "[]"


async def test_a_program_that_makes_no_token_in_time_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gristmill.sources.mail.account.TOKEN_PATIENCE", 0.5)
    note = tmp_path / "pid"
    command = f"sh -c 'echo $$ > {note}; sleep 60'"
    with pytest.raises(Transient, match="in time"):
        await read_credential(MailAccount(host="localhost", user="anna", token_command=command))
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


@pytest.mark.parametrize(("command", "said"), [("false", "gave no token"), ("no-such-program", "cannot be started")])
async def test_a_program_that_gives_no_token_is_told(command: str, said: str) -> None:
    with pytest.raises(Permanent, match=said):
        await read_credential(MailAccount(host="localhost", user="anna", token_command=command))


@pytest.mark.parametrize(
    "wrong",
    [
        {"host": "mail.example.org", "user": "a", "password": "secret"},
        {"host": "mail.example.org", "user": "a"},
        {"host": "mail.example.org", "user": "a", "password": "env:X", "security": "none"},
        {"host": "mail.example.org", "user": "a", "password": "env:X", "token_command": "x"},
    ],
    ids=["in clear", "none", "over an open line", "both"],
)
def test_an_account_that_would_give_its_password_away_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"secret|password"):
        MailAccount.model_validate(wrong)
