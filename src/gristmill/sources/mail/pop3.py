"""Mailboxes by POP3: mails by the ids that the server gives them (UIDL)."""

import poplib
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from gristmill.errors import Permanent, Transient
from gristmill.sources.blocking import OneThread
from gristmill.sources.bringing import refuse_large
from gristmill.sources.failures import explain_failure
from gristmill.sources.mail.account import (
    MailAccount,
    MailRefused,
    check_blame,
    divide_by_size,
    explain_refusal,
    read_credential,
    set_aside_refused,
)
from gristmill.sources.mail.bounded import MOST_AROUND, PATIENCE, Allowance, BoundedLines
from gristmill.sources.mail.index import describe_mail
from gristmill.sources.model import Batch, Checkpoint, Connector, ConnectorContext, Kind, Listed, RawItem
from gristmill.sources.store import check_external
from gristmill.wording import format_count

PORTION = 500  # ids that are compared together
LONGEST_LINE = 16 << 20  # bytes; the library gives up at 2,048, and with it the whole mailbox


class Pop3Options(MailAccount):
    """A mailbox that is read by POP3; nothing is deleted there."""

    usual_ports: ClassVar[tuple[int, int]] = (poplib.POP3_SSL_PORT, poplib.POP3_PORT)


class _LongLines(poplib.POP3):
    """Reads lines of any honest length: a mail with a long one must not keep the others away; and within limits."""

    def __init__(self, lines: BoundedLines, *where: Any, **how: Any) -> None:
        self._lines = lines  # before the greeting is read
        try:
            super().__init__(*where, **how)
        except BaseException:
            if hasattr(self, "sock"):  # connected, but not greeted: nobody else will close it
                self.close()
            raise

    def _getline(self) -> tuple[bytes, int]:
        line = self._lines.readline(self.sock, LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise poplib.error_proto("line too long")
        if not line:
            raise poplib.error_proto("-ERR EOF")
        octets = len(line)
        return line.rstrip(b"\r\n"), octets


class _Secure(_LongLines, poplib.POP3_SSL):
    """The same over TLS."""


class Maildrop:
    """A signed-in connection; every call blocks, and runs in the thread of its connector."""

    def __init__(self, options: Pop3Options, credential: str, max_bytes: int) -> None:
        self._options = options
        self._allowance = Allowance(max_bytes + MOST_AROUND)
        self._client = self._connect()
        try:
            self._sign_in(credential)
        except BaseException:
            self.abort()
            raise

    def _connect(self) -> poplib.POP3:
        wanted, tls = self._options, self._options.make_context()
        lines = BoundedLines(self._allowance)
        try:
            if wanted.security == "tls":
                return _Secure(lines, wanted.host, wanted.door, timeout=PATIENCE, context=tls)
            client = _LongLines(lines, wanted.host, wanted.door, timeout=PATIENCE)
            if wanted.security == "starttls":
                client.stls(context=tls)
        except (OSError, poplib.error_proto) as error:
            raise Transient(explain_failure(wanted.place, error)) from error
        return client

    def _sign_in(self, credential: str) -> None:
        try:
            if self._options.token_command:
                bearer = f"user={self._options.user}\x01auth=Bearer {credential}\x01\x01"
                self._client._shortcmd(f"AUTH XOAUTH2 {b64encode(bearer.encode()).decode()}")  # pyright: ignore
            else:
                self._client.user(self._options.user)
                self._client.pass_(credential)
        except poplib.error_proto as error:
            raise explain_refusal(self._options.place, _say(error), signing_in=True) from None
        except OSError as error:
            raise Transient(f"{self._options.place} broke off while we signed in.") from error

    def list_mails(self) -> dict[str, tuple[int, int]]:
        """The number and the size of each mail, by its id."""
        self._allowance.renew()
        try:
            ids = dict(_pairs(self._client.uidl()[1]))
            sizes = dict(_pairs(self._client.list()[1]))
        except poplib.error_proto as error:
            if "uidl" in _say(error).casefold() or "unknown command" in _say(error).casefold():
                raise Permanent(f"{self._options.place} gives mails no ids (UIDL): use IMAP instead.") from error
            raise explain_refusal(self._options.place, _say(error), signing_in=False) from error
        except OSError as error:
            raise self._explain_loss(error) from error
        return {check_external(id_): (number, int(sizes.get(number, "0"))) for number, id_ in ids.items()}

    def fetch(self, numbers: Sequence[int]) -> tuple[dict[int, bytes], dict[int, str]]:
        """These mails, and why the server does not give the others: one that is damaged there keeps no other away."""
        self._allowance.renew()
        found, refused = dict[int, bytes](), dict[int, str]()
        for number in numbers:
            try:
                found[number] = b"\r\n".join(self._client.retr(number)[1]) + b"\r\n"
            except poplib.error_proto as error:
                why = explain_refusal(self._options.place, _say(error), signing_in=False)
                if not isinstance(why, MailRefused) or not _is_answer(error):
                    raise why from error
                refused[number] = str(why)
            except OSError as error:
                raise self._explain_loss(error) from error
        return found, refused

    def _explain_loss(self, error: Exception) -> Transient:
        return Transient(f"The connection to {self._options.place} was lost.")

    def leave(self) -> None:
        self._allowance.renew(PATIENCE)
        with suppress(Exception):
            self._client.quit()

    def abort(self) -> None:
        with suppress(Exception):
            self._client.close()


def _pairs(lines: Sequence[bytes]) -> list[tuple[int, str]]:
    words = [line.decode("utf-8", "backslashreplace").split(maxsplit=1) for line in lines]
    return [(int(pair[0]), pair[1]) for pair in words if len(pair) == 2 and pair[0].isdigit()]


def _is_answer(error: poplib.error_proto) -> bool:
    """Whether the server said it; else the line broke, or said too much, and what follows means nothing."""
    return bool(error.args) and isinstance(error.args[0], bytes)


def _say(error: poplib.error_proto) -> str:
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)


@dataclass(frozen=True)
class Pop3Connector:
    """The mailbox itself is the checkpoint: its ids are compared with those that are known."""

    maildrop: Maildrop
    thread: OneThread
    context: ConnectorContext

    async def check(self) -> str:
        return f"It has {format_count(len(await self.thread.run(self.maildrop.list_mails)), 'mail')}."

    async def changes(self, checkpoint: Checkpoint) -> AsyncIterator[Batch]:
        mails = await self.thread.run(self.maildrop.list_mails)
        ids = iter(mails)
        while portion := list(islice(ids, PORTION)):
            unlike = await self.context.known.find_unlike([Listed(one) for one in portion])
            async for items in self._fetch({one.external: mails[one.external] for one in unlike}):
                yield Batch({}, items)
        yield Batch({})

    async def _fetch(self, wanted: dict[str, tuple[int, int]]) -> AsyncIterator[list[RawItem]]:
        ids = {number: id_ for id_, (number, _) in wanted.items()}
        most = self.context.max_bytes
        small = sorted((number, size) for number, size in wanted.values() if size <= most)
        for portion in divide_by_size(small):
            found, refused = await self.thread.run(self.maildrop.fetch, portion)
            check_blame(len(found), refused)
            items = [RawItem(ids[number], mail) for number, mail in found.items()]
            yield [*items, *(set_aside_refused(ids[number], why, {}) for number, why in refused.items())]
        if large := [(id_, size) for id_, (_, size) in wanted.items() if size > most]:
            yield [refuse_large(id_, size, most, {}) for id_, size in large]

    async def list_ids(self) -> AsyncIterator[Sequence[Listed]]:
        yield [Listed(one) for one in await self.thread.run(self.maildrop.list_mails)]

    async def fetch(self, ids: Sequence[str]) -> AsyncIterator[RawItem]:
        mails = await self.thread.run(self.maildrop.list_mails)
        async for items in self._fetch({one: mails[one] for one in ids if one in mails}):
            for item in items:
                yield item


@asynccontextmanager
async def open_pop3(options: Pop3Options, context: ConnectorContext) -> AsyncGenerator[Connector]:
    credential = await read_credential(options)
    async with OneThread() as thread:
        maildrop = await thread.open(Maildrop, options, credential, context.max_bytes, close=Maildrop.abort)
        try:
            yield Pop3Connector(maildrop, thread, context)
            await thread.run(maildrop.leave)
        except BaseException:
            maildrop.abort()
            raise


POP3 = Kind("pop3", "A mailbox at a server, by POP3.", Pop3Options, open_pop3, describe_mail)
