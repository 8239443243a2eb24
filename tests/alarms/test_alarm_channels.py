"""Channels: webhooks, mail and commands get what they understand, once, and no secret appears in an error."""

import email
import email.policy
import json
import shutil
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from gristmill.alarms import AlarmId, list_alarms, list_deliveries, try_channel
from gristmill.alarms.channels import AlarmMessage, tell_channel
from gristmill.alarms.channels.messages import write_slack
from gristmill.alarms.evaluating import AlarmLook, settle_look
from gristmill.alarms.letters import TellAlarm
from gristmill.alarms.model import Alarm
from gristmill.alarms.telling import tell_alarm
from gristmill.db import Database
from gristmill.errors import Permanent, Refused, Transient, Unknown
from gristmill.queue import Done, Skip
from gristmill.settings import AlarmSettings, CommandChannel, EmailChannel, FetchSettings, Settings, WebhookChannel
from gristmill.telemetry import Finding
from smtp_server import MailServer, make_certificate, run_mail_server

AT = datetime(2026, 11, 17, 12, tzinfo=UTC)
ALARM = Alarm(
    id=AlarmId(7),
    client="",
    project="",
    rule="stage-stalled",
    subject="ocr",
    level="critical",
    sentence="ocr is stalled: <!channel> & 5 tasks wait.",
    advice="Look at its workers.",
    fired_at=AT,
    seen_at=AT,
    told_at=AT,
    told=1,
    over_at=None,
    acknowledged_at=None,
    acknowledged_by=None,
    note=None,
)
FIRED = AlarmMessage(ALARM, "fired", 1)
OVER = AlarmMessage(replace(ALARM, over_at=AT + timedelta(minutes=12)), "over", 2)


def settings(*channels: Any) -> Settings:
    return Settings(
        alarms=AlarmSettings(channels=channels), fetch=FetchSettings(allowed_hosts=("127.0.0.0/8",), robots=False)
    )


# --- webhooks


@pytest.fixture
async def hook() -> AsyncIterator[tuple[int, list[tuple[Any, str]], list[int]]]:
    """A server of webhooks: its port, what it got with which key, and the statuses that it answers with, in order."""
    got: list[tuple[Any, str]] = []
    statuses: list[int] = []

    async def take(request: web.Request) -> web.Response:
        got.append((await request.json(), request.headers["Idempotency-Key"]))
        return web.Response(status=statuses.pop(0) if statuses else 200, text="ok")

    app = web.Application()
    app.router.add_post("/services/secret", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield runner.addresses[0][1], got, statuses
    await runner.cleanup()


async def test_a_webhook_gets_what_slack_understands(
    hook: tuple[int, list[tuple[Any, str]], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, got, _ = hook
    monkeypatch.setenv("OPS_WEBHOOK", f"http://127.0.0.1:{port}/services/secret")
    channel = WebhookChannel(name="ops", kind="webhook", url="env:OPS_WEBHOOK")
    await tell_channel(channel, FIRED, settings(channel))
    ((body, key),) = got
    assert key == "gristmill-alarm-7-fired-1"
    assert body["text"] == "Critical: stage-stalled (ocr)"
    (shown,) = body["attachments"]
    assert shown["color"] == "danger"
    assert "&lt;!channel&gt; &amp; 5 tasks" in shown["text"], "nobody is called by the name of a file"
    assert "gristmill alarms ack 7" in shown["text"]


def test_the_end_is_told_in_green() -> None:
    body = write_slack(OVER)
    assert body["text"] == "Over: stage-stalled (ocr)"
    assert body["attachments"][0]["color"] == "good"
    assert "It is well again after 12 min." in body["attachments"][0]["text"]


async def test_a_webhook_that_fails_is_tried_again_without_naming_its_secret(
    hook: tuple[int, list[tuple[Any, str]], list[int]], tmp_path: Path
) -> None:
    port, _, statuses = hook
    (tmp_path / "url").write_text(f"http://127.0.0.1:{port}/services/secret\n")
    channel = WebhookChannel(name="ops", kind="webhook", url=f"file:{tmp_path}/url")
    statuses[:] = [500, 404]
    with pytest.raises(Transient) as failed:
        await tell_channel(channel, FIRED, settings(channel))
    assert "secret" not in str(failed.value)
    with pytest.raises(Permanent):
        await tell_channel(channel, FIRED, settings(channel))


async def test_a_webhook_to_a_machine_of_our_own_must_be_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPS_WEBHOOK", "http://169.254.169.254/latest")
    channel = WebhookChannel(name="ops", kind="webhook", url="env:OPS_WEBHOOK")
    with pytest.raises(Permanent, match="not the public Internet"):
        await tell_channel(channel, FIRED, settings(channel))


@pytest.mark.parametrize("url", ["env:NOT_THERE", "file:/not/there"])
async def test_a_secret_that_is_missing_is_named_by_its_place(url: str) -> None:
    channel = WebhookChannel(name="ops", kind="webhook", url=url)
    with pytest.raises(Refused, match=r"secret"):
        await tell_channel(channel, FIRED, settings(channel))


# --- mail


def mail_channel(server: MailServer, **more: Any) -> EmailChannel:
    known: dict[str, Any] = {"security": "none", "host": "localhost", "port": server.port}
    people = {"sender": "mill@example.org", "to": ("a@example.org", "b@example.org")}
    return EmailChannel(name="mail", kind="email", **{**known, **people, **more})


async def test_a_mail_says_what_is_wrong_and_answers_the_first_one() -> None:
    async with run_mail_server() as server:
        channel = mail_channel(server)
        await tell_channel(
            channel, AlarmMessage(replace(ALARM, subject="o\r\nBcc: x@example.org"), "fired", 1), settings()
        )
        await tell_channel(channel, OVER, settings())
    first, last = (email.message_from_bytes(one, policy=email.policy.default) for one in server.mails)
    assert first["Subject"] == "[gristmill] Critical: stage-stalled (o Bcc: x@example.org)"
    assert first["Bcc"] is None
    assert first["AlarmMessage-ID"] == "<gristmill-alarm-7-fired-1@example.org>"
    assert last["In-Reply-To"] == first["AlarmMessage-ID"]
    assert "It is well again after 12 min." in last.get_content()
    assert server.recipients[:2] == ["TO:<a@example.org>", "TO:<b@example.org>"]


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificate")
@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_password_travels_encrypted(security: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context, certificate = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    monkeypatch.setenv("SMTP_PASSWORD", "hush")
    async with run_mail_server(tls=context, wrap=security == "tls") as server:
        server.password = "hush"
        channel = mail_channel(server, security=security, user="mill", password="env:SMTP_PASSWORD")
        await tell_channel(channel, FIRED, settings())
    assert server.logins == [("mill", "hush")]
    assert len(server.mails) == 1
    assert bool(server.secured) == (security == "starttls")


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl makes the certificate")
async def test_a_certificate_that_nobody_vouches_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, _ = make_certificate(tmp_path)
    monkeypatch.setenv("SMTP_PASSWORD", "hush")
    async with run_mail_server(tls=context) as server:
        channel = mail_channel(server, security="starttls", user="mill", password="env:SMTP_PASSWORD")
        with pytest.raises(Permanent, match="certificate of localhost is not valid"):
            await tell_channel(channel, FIRED, settings())
    assert server.logins == []


async def test_a_server_without_encryption_gets_no_mail_that_asks_for_it() -> None:
    async with run_mail_server() as server:
        with pytest.raises(Permanent, match="does not offer starttls"):
            await tell_channel(mail_channel(server, security="starttls"), FIRED, settings())
    assert server.mails == []


async def test_a_wrong_password_is_told_without_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMTP_PASSWORD", "hush")
    async with run_mail_server() as server:
        channel = mail_channel(server, user="mill", password="env:SMTP_PASSWORD")
        with pytest.raises(Permanent, match="refuses the login of mill") as refused:
            await tell_channel(channel, FIRED, settings())
    assert "hush" not in str(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize(
    ("command", "answer", "error"),
    [
        ("RCPT", "550 no such person", Permanent),
        ("RCPT", "450 greylisted", Transient),
        ("MAIL", "421 too busy", Transient),
        ("END", "554 we think it is spam", Permanent),
        ("END", "452 disk full", Transient),
        ("MAIL", "rubbish", Transient),
    ],
)
async def test_an_answer_of_a_mail_server_says_whether_to_try_again(
    command: str, answer: str, error: type[Exception]
) -> None:
    async with run_mail_server() as server:
        server.refuse[command] = answer
        with pytest.raises(error):
            await tell_channel(mail_channel(server), FIRED, settings())


async def test_a_mail_server_that_is_away_is_tried_again() -> None:
    async with run_mail_server() as server:
        channel = mail_channel(server)
    with pytest.raises(Transient, match=r"localhost:[0-9]+ cannot be reached: Connection refused"):
        await tell_channel(channel, FIRED, settings())


# --- commands


def command(script: str, **more: Any) -> CommandChannel:
    return CommandChannel(name="pager", kind="command", argv=(sys.executable, "-c", script), **more)


async def test_a_command_gets_json_on_its_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISTMILL_DATABASE_URL", "postgresql://secret")
    script = f"import os, sys; open({str(tmp_path / 'got')!r}, 'w').write(sys.stdin.read() + repr(dict(os.environ)))"
    await tell_channel(command(script), FIRED, settings())
    text = (tmp_path / "got").read_text()
    told, environment = json.JSONDecoder().raw_decode(text)[0], text[text.rindex("}{") + 1 :]
    assert told["key"] == "gristmill-alarm-7-fired-1"
    assert told["sentence"] == ALARM.sentence
    assert "secret" not in environment, "our environment is not its business"


async def test_a_command_that_fails_is_tried_again_with_its_complaint() -> None:
    script = "import sys; sys.stdin.read(); print('no\\nsignal', file=sys.stderr); sys.exit(3)"
    with pytest.raises(Transient, match="ended with 3: no signal"):
        await tell_channel(command(script), FIRED, settings())


async def test_a_command_that_reads_nothing_and_hangs_is_ended() -> None:
    with pytest.raises(Transient, match=r"took longer than 0\.5 s"):
        await tell_channel(command("import time; time.sleep(60)", timeout=timedelta(seconds=0.5)), FIRED, settings())


async def test_a_command_that_does_not_exist_needs_somebody() -> None:
    channel = CommandChannel(name="pager", kind="command", argv=("/not/there",))
    with pytest.raises(Permanent, match="cannot be started"):
        await tell_channel(channel, FIRED, settings())


# --- the task


async def fire(db: Database, chosen: Settings) -> int:
    async with db.transaction() as tx:
        now = await tx.value("SELECT clock()")
        look = AlarmLook(now, ("disk",), (Finding("disk", "disk", "The disk is full."),))
        await settle_look(tx, look=look, settings=chosen.alarms)
        (alarm,) = await list_alarms(tx)
    return alarm.id


async def test_a_delivery_is_noted_with_its_completion(db: Database) -> None:
    chosen = settings(command("import sys; sys.stdin.read()"))
    alarm = await fire(db, chosen)
    done = await tell_alarm(TellAlarm(alarm, "pager", "fired", 1), db=db, settings=chosen)
    assert isinstance(done, Done)
    assert done.write is not None
    async with db.transaction() as tx:
        await done.write(tx)
        await done.write(tx)  # a second attempt leaves one note
        assert [(one.channel, one.event) for one in await list_deliveries(tx, AlarmId(alarm))] == [("pager", "fired")]


async def test_a_channel_that_was_removed_is_skipped(db: Database) -> None:
    alarm = await fire(db, settings())
    assert isinstance(await tell_alarm(TellAlarm(alarm, "gone", "fired", 1), db=db, settings=settings()), Skip)


async def test_what_is_over_already_is_not_told_as_new(db: Database) -> None:
    chosen = settings(command("raise SystemExit(1)"))
    alarm = await fire(db, chosen)
    async with db.transaction() as tx:
        await tx.execute("UPDATE alarm SET over_at = clock()")
    assert isinstance(await tell_alarm(TellAlarm(alarm, "pager", "fired", 1), db=db, settings=chosen), Skip)


async def test_a_missing_secret_is_a_dead_letter_that_can_be_replayed(db: Database) -> None:
    channel = WebhookChannel(name="ops", kind="webhook", url="env:NOT_THERE")
    alarm = await fire(db, settings(channel))
    with pytest.raises(Permanent, match="There is no secret at env:NOT_THERE"):
        await tell_alarm(TellAlarm(alarm, "ops", "fired", 1), db=db, settings=settings(channel))


async def test_a_channel_can_be_tried(db: Database, tmp_path: Path) -> None:
    script = f"import sys; open({str(tmp_path / 'got')!r}, 'w').write(sys.stdin.read())"
    async with db.reading() as tx:
        await try_channel(tx, settings(command(script)), "pager")
        with pytest.raises(Unknown, match=r"There is no channel “fax” \(pager\)"):
            await try_channel(tx, settings(command(script)), "fax")
    assert "alarms reach this channel" in (tmp_path / "got").read_text()
