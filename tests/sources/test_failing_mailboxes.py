"""Mail servers that break off or refuse: whatever they do costs a delay, and nothing else."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from dovecot import PASSWORD, Dovecot
from farm import Farm, a_farm, a_mail
from worlds import MailServerWorld

from gristmill.db import Database
from gristmill.documents import read_message_id
from gristmill.queue import Done, Snooze
from gristmill.sources.kinds import KINDS
from gristmill.sources.model import Source

MAILS = 30
LONG = "The mill grinds what it is given. " * 300  # ten kilobytes: most cuts come amid a mail
KEPT = """
SELECT r.bytes FROM source_item i JOIN source_raw r ON r.item = i.id WHERE i.source = %(id)s AND NOT i.leaving
"""
Change = Callable[[bytes], bytes]


@dataclass
class Wire:
    """Stands between us and a server: breaks off behind so many bytes of the server, or changes what it says."""

    port: int = 0
    allowance: int | None = None  # bytes that come through on each connection; None: all
    change: Change = lambda piece: piece

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int) -> None:
        theirs, ours = await asyncio.open_connection("127.0.0.1", target)
        ways = (
            asyncio.create_task(_pump(reader, ours, None, lambda piece: piece)),
            asyncio.create_task(_pump(theirs, writer, self.allowance, lambda piece: self.change(piece))),
        )
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            for one in (ours, writer):
                one.transport.abort()  # as a network does that goes away
                one.close()
            await asyncio.gather(*ways, return_exceptions=True)


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, allowance: int | None, change: Change
) -> None:
    left = allowance
    with suppress(OSError):
        while piece := await reader.read(1 << 12):
            piece = change(piece)
            writer.write(piece if left is None else piece[:left])
            await writer.drain()
            if left is not None and (left := left - len(piece)) <= 0:
                await asyncio.sleep(0.01)  # what was written goes out before the line is cut
                return


@asynccontextmanager
async def a_wire(target: int) -> AsyncGenerator[Wire]:
    wire, carried = Wire(), set[asyncio.Task[None]]()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        carried.add(task)
        await wire.carry(reader, writer, target)

    server = await asyncio.start_server(carry, "127.0.0.1", 0)
    wire.port = server.sockets[0].getsockname()[1]
    try:
        yield wire
    finally:
        server.close()
        for task in carried:
            task.cancel()
        await asyncio.gather(*carried, return_exceptions=True)


@pytest.fixture(params=["imap", "pop3"])
def world(request: pytest.FixtureRequest, dovecot: Dovecot, monkeypatch: pytest.MonkeyPatch) -> MailServerWorld:
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    return MailServerWorld(dovecot, request.param, getattr(dovecot, request.param))


@pytest.fixture
async def wire(world: MailServerWorld) -> AsyncIterator[Wire]:
    async with a_wire(world.options["port"]) as opened:
        world.options["port"] = opened.port
        yield opened


@pytest.fixture
async def farm(db: Database, tmp_path: Path) -> AsyncIterator[Farm]:
    async with a_farm(db, tmp_path) as opened:
        yield opened


async def added(farm: Farm, world: MailServerWorld) -> Source:
    for n in range(MAILS):
        await asyncio.to_thread(world.append, a_mail(n, LONG))
    source = await farm.add(world.kind.name, **world.options)
    await farm.rows("DELETE FROM ticket RETURNING 1")  # it is polled by hand
    return source


async def test_a_mailbox_that_breaks_off_again_and_again_has_every_mail_once(
    farm: Farm, world: MailServerWorld, wire: Wire
) -> None:
    source, hands = await added(farm, world), farm.by_hand(KINDS)
    size = MAILS * len(LONG)
    for cut in (0, 10, 100, 300, 1_000, size // 7, size // 3, size // 2, size - 1):
        wire.allowance = cut
        answer = await hands.poll(source)
        assert isinstance(answer, Snooze), cut
        assert (await farm.look(source)).error
    wire.allowance = None
    answer = await hands.poll(source)
    assert isinstance(answer, Done)
    items = await farm.items(source)
    assert [item.version for item in items] == [1] * MAILS
    assert {bytes(item.raw).replace(b"\r\n", b"\n").strip() for item in items} == {
        a_mail(n, LONG).replace(b"\r\n", b"\n").strip() for n in range(MAILS)
    }  # a mail that was cut off is not kept as a shorter one


async def test_a_mailbox_that_is_busy_is_waited_for_and_not_called_broken(
    farm: Farm, world: MailServerWorld, wire: Wire
) -> None:
    source, hands = await added(farm, world), farm.by_hand(KINDS)
    wire.change = refuse_for_now
    answer = await hands.poll(source)
    assert isinstance(answer, Snooze)
    looked = await farm.look(source)
    assert (looked.failures, looked.waits_until is not None) == (0, True)
    wire.change = lambda piece: piece
    assert isinstance(await hands.poll(source), Done)


def refuse_for_now(piece: bytes) -> bytes:
    """What a busy server says to whoever signs in."""
    piece = piece.replace(b"+OK Logged in", b"-ERR [IN-USE] Do you have another POP session running?")
    return re.sub(rb"\bOK [^\r\n]*Logged in", b"NO [UNAVAILABLE] Come again later", piece)


async def test_a_password_that_expires_is_told_and_read_anew_with_the_next_poll(
    farm: Farm, world: MailServerWorld, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, hands = await added(farm, world), farm.by_hand(KINDS)
    monkeypatch.setenv("MAIL_PASSWORD", "stale-secret")
    await hands.poll(source)
    error = str((await farm.look(source)).error)
    assert "does not let us in" in error
    assert "stale-secret" not in error
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    assert isinstance(await hands.poll(source), Done)
    assert len(await farm.items(source)) == MAILS


async def test_mails_that_come_and_go_while_the_mailbox_is_read_cost_no_other_mail(
    farm: Farm, world: MailServerWorld, wire: Wire
) -> None:
    source, hands = await added(farm, world), farm.by_hand(KINDS)
    seen = 0

    def move(piece: bytes) -> bytes:
        nonlocal seen
        seen += 1
        if seen == 20:
            world.append(a_mail("late"))
            world._delete(["HEADER", "Message-ID", "<0@acme.test>"])  # pyright: ignore[reportPrivateUsage]
        return piece

    wire.change = move
    await hands.poll(source)
    wire.change = lambda piece: piece
    assert isinstance(await hands.poll(source), Done)
    assert isinstance(await hands.compare(source), Done)
    kept = await farm.rows(KEPT, id=source.id)
    assert sorted(read_message_id(row.bytes) for row in kept) == sorted(
        f"{n}@acme.test" for n in [*range(1, MAILS), "late"]
    )
