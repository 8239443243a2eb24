"""Mailboxes by IMAP: new mails by their UIDs, a renumbered folder by its Message-IDs."""

import imaplib
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, NamedTuple, cast

from imapclient import IMAPClient
from imapclient.exceptions import IMAPClientAbortError, IMAPClientError, LoginError, ProtocolError
from imapclient.imap4 import IMAP4WithTimeout
from imapclient.tls import IMAP4_TLS
from pydantic import Field

from gristmill.documents import read_message_id
from gristmill.errors import Overloaded, Transient
from gristmill.sources.blocking import OneThread
from gristmill.sources.bringing import refuse_large
from gristmill.sources.failures import explain_failure
from gristmill.sources.mail.account import (
    REFUSED,
    MailAccount,
    MailRefused,
    check_blame,
    divide_by_size,
    explain_refusal,
    read_credential,
    set_aside_refused,
)
from gristmill.sources.mail.bounded import MOST_AROUND, PATIENCE, Allowance, BoundedLines, SaidTooMuch
from gristmill.sources.mail.index import describe_mail, is_sent_folder
from gristmill.sources.model import Batch, Checkpoint, Connector, ConnectorContext, Kind, Listed, RawItem
from gristmill.sources.store import check_external
from gristmill.wording import format_count

LONGEST_LINE = 1_000_000  # bytes of an answer; a mail comes as a whole, not by lines
IDLE = 25.0  # seconds of one IDLE: servers end it after half an hour, networks sooner
PORTION = 500  # UIDs that are asked about together
CLOSED = ("[NOPERM]", "[NONEXISTENT]", "UIDVALIDITY")  # a folder that is named, and that nobody lets us read
SENT = b"\\Sent"
LEFT_OUT = (b"\\Noselect", b"\\NonExistent", b"\\Junk", b"\\Trash", b"\\Drafts", b"\\All")
LEFT_OUT_NAMES = frozenset({"trash", "junk", "spam", "drafts", "deleted items", "koš", "kôš", "papierkorb", "smeće"})


class ImapOptions(MailAccount):
    """A mailbox that is read by IMAP."""

    usual_ports: ClassVar[tuple[int, int]] = (993, 143)
    folders: str = Field(default="", description="Folders, with commas between; none: all but trash, junk and drafts.")
    idle: bool = Field(default=True, description="Whether the server may tell us of new mails (IDLE).")


class Folder(NamedTuple):
    """A folder as it is now."""

    name: str
    validity: int
    next: int  # the UID that the next mail gets
    sent: bool = False

    @property
    def note(self) -> dict[str, object]:
        return {"folder": self.name, **({"sent": True} if self.sent else {})}

    def external(self, uid: int) -> str:
        return check_external(f"{self.name};{self.validity};{uid}")

    def name_old(self, old: Sequence[int]) -> tuple[str, ...]:
        """How the ids of its mails began before it was renumbered."""
        return tuple(f"{self.name};{one};" for one in old)


class _Bounded(imaplib.IMAP4):
    """Reads within limits."""

    def __init__(self, lines: BoundedLines, *where: Any) -> None:
        self._lines = lines  # before the greeting is read
        super().__init__(*where)

    def read(self, size: int) -> bytes:
        return self._lines.read(self.sock, size)

    def readline(self) -> bytes:
        line = self._lines.readline(self.sock, LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise SaidTooMuch(f"a line has more than {LONGEST_LINE:,} bytes")
        return line


class _Plain(_Bounded, IMAP4WithTimeout):
    """Over a bare connection, or one that becomes secure."""


class _Secure(_Bounded, IMAP4_TLS):
    """Over TLS from the beginning."""


class _Client(IMAPClient):
    """The library's client, over connections that are read within limits."""

    def __init__(self, lines: BoundedLines, *where: Any, **how: Any) -> None:
        self._lines = lines
        super().__init__(*where, **how)
        self._imap.debug = 0  # the library would write every line of every mail for a log that nobody keeps

    def _create_IMAP4(self) -> _Plain | _Secure:
        if self.ssl:
            return _Secure(self._lines, self.host, self.port, self.ssl_context, PATIENCE)
        return _Plain(self._lines, self.host, self.port, PATIENCE)


class Mailbox:
    """A signed-in connection; every call blocks, and runs in the thread of its connector."""

    def __init__(self, options: ImapOptions, credential: str, max_bytes: int) -> None:
        self._options = options
        self._allowance = Allowance(max_bytes + MOST_AROUND)
        self._sent = set[str]()  # folders that the server calls those of sent mails
        self._client = self._connect()
        try:
            self._sign_in(credential)
        except BaseException:
            self.abort()
            raise

    def _connect(self) -> IMAPClient:
        wanted, tls = self._options, self._options.make_context()
        over_tls = wanted.security == "tls"
        try:
            client = _Client(
                BoundedLines(self._allowance),
                wanted.host,
                wanted.door,
                ssl=over_tls,
                ssl_context=tls if over_tls else None,
                timeout=PATIENCE,
            )
            if wanted.security == "starttls":
                client.starttls(tls)  # pyright: ignore[reportUnknownMemberType] it has no types of its own
        except (OSError, IMAPClientError) as error:
            raise Transient(explain_failure(wanted.place, error)) from error
        return client

    def _sign_in(self, credential: str) -> None:
        try:
            if self._options.token_command:
                self._client.oauth2_login(self._options.user, credential)
            else:
                self._client.login(self._options.user, credential)
        except LoginError as error:
            raise explain_refusal(self._options.place, str(error), signing_in=True) from None
        except (OSError, IMAPClientError) as error:
            raise Transient(f"{self._options.place} broke off while we signed in.") from error

    def call(self, name: str, *args: Any, **more: Any) -> Any:
        """A method of the client; whatever it raises becomes one of our errors."""
        self._allowance.renew()
        try:
            return getattr(self._client, name)(*args, **more)
        except (IMAPClientAbortError, ProtocolError, OSError, EOFError) as error:
            why = explain_refusal(self._options.place, str(error), signing_in=False)
            lost = Transient(f"The connection to {self._options.place} was lost.")
            raise (why if isinstance(why, Overloaded) else lost) from error
        except IMAPClientError as error:
            raise explain_refusal(self._options.place, str(error), signing_in=False) from error

    def leave(self) -> None:
        self._allowance.renew(PATIENCE)
        with suppress(Exception):
            self._client.logout()

    def abort(self) -> None:
        with suppress(Exception):
            self._client.shutdown()

    def list_folders(self) -> list[str]:
        wanted = [name.strip() for name in self._options.folders.split(",") if name.strip()]
        found = cast(list[tuple[tuple[bytes, ...], bytes, str]], self.call("list_folders"))
        self._sent = {name for flags, _, name in found if SENT in flags}
        return wanted or sorted(name for flags, _, name in found if is_wanted(flags, name))

    def select(self, name: str) -> Folder:
        found = cast(Mapping[bytes, Any], self.call("select_folder", name, readonly=True))
        if not found.get(b"UIDVALIDITY"):
            raise MailRefused(f"{self._options.place} gives the mails of {name} no lasting numbers (UIDVALIDITY).")
        sent = name in self._sent or is_sent_folder(name)
        return Folder(name, int(found[b"UIDVALIDITY"]), int(found.get(b"UIDNEXT") or 0), sent)

    def find_uids(self, first: int = 1) -> list[int]:
        """All UIDs from this one on; asked for `9:*`, a server also names the last one though it is lower."""
        found = cast(Sequence[int], self.call("search", ["UID", f"{first}:*"]))
        return sorted(uid for uid in found if uid >= first)

    def find_sizes(self, uids: Sequence[int]) -> list[tuple[int, int]]:
        found = self.call("fetch", uids, ["RFC822.SIZE"])
        return sorted((uid, int(about[b"RFC822.SIZE"])) for uid, about in found.items() if b"RFC822.SIZE" in about)

    def fetch_ids(self, uids: Sequence[int]) -> dict[int, str]:
        """The Message-ID of each mail that has one."""
        field = "BODY.PEEK[HEADER.FIELDS (MESSAGE-ID)]"
        found = self.call("fetch", uids, [field])
        heads = {uid: about.get(b"BODY[HEADER.FIELDS (MESSAGE-ID)]") or b"" for uid, about in found.items()}
        return {uid: id_ for uid, head in heads.items() if (id_ := read_message_id(head))}

    def fetch_mails(self, uids: Sequence[int]) -> dict[int, bytes]:
        found = self.call("fetch", uids, ["BODY.PEEK[]"])
        return {uid: about[b"BODY[]"] for uid, about in found.items() if about.get(b"BODY[]") is not None}

    def idle(self, seconds: float) -> bool:
        """Whether the server told of anything new within so many seconds; the folder was selected before."""
        self.call("idle")
        try:
            told = cast(list[tuple[Any, ...]], self.call("idle_check", timeout=seconds))
        finally:
            self.call("idle_done")
        return any(len(one) > 1 and one[1] in (b"EXISTS", b"RECENT") for one in told)


def is_wanted(flags: Sequence[bytes], name: str) -> bool:
    last = re.split(r"[./]", name)[-1].strip().casefold()
    return not set(flags) & set(LEFT_OUT) and last not in LEFT_OUT_NAMES


@dataclass(frozen=True)
class ImapConnector:
    """The checkpoint is, for each folder, its validity and the UID that comes next."""

    mailbox: Mailbox
    thread: OneThread
    context: ConnectorContext

    async def check(self) -> str:
        folders = await self.thread.run(self.mailbox.list_folders)
        return f"It has {format_count(len(folders), 'folder')}: {', '.join(folders[:10])}."

    async def changes(self, checkpoint: Checkpoint) -> AsyncIterator[Batch]:
        places = {name: dict(place) for name, place in dict(checkpoint.get("folders", {})).items()}
        names = await self.thread.run(self.mailbox.list_folders)
        refused = list[RawItem]()
        for name in names:
            try:
                folder = await self.thread.run(self.mailbox.select, name)
                async for items, moved, place in self._read_folder(folder, places.get(name)):
                    places[name] = place
                    yield Batch({"folders": {one: dict(where) for one, where in places.items()}}, items, moved)
            except MailRefused as error:  # those behind it are read nevertheless
                refused.append(RawItem(name_refused(name), b"", REFUSED, {"folder": name}, str(error)))
        if refused and len(refused) == len(names):
            raise Transient(refused[0].refusal)
        if refused:
            yield Batch({"folders": places}, refused)
        gone = set(places) - set(names)
        if gone:
            yield Batch({"folders": {one: where for one, where in places.items() if one not in gone}})

    async def _read_folder(
        self, folder: Folder, place: Mapping[str, Any] | None
    ) -> AsyncIterator[tuple[list[RawItem], dict[str, str], dict[str, Any]]]:
        """New mails, and where the folder stands behind them. `old` are its validities before it was renumbered.

        What is known under other numbers is moved before anything is fetched: whoever is killed in between finds those
        mails under their new numbers, and not twice.
        """
        old = _read_validities((place or {}).get("old", []))
        first = int((place or {}).get("next", 1))
        if place is not None and place["validity"] != folder.validity:
            old, first = [*old, int(place["validity"])], 1
        uids = await self.thread.run(self.mailbox.find_uids, first)
        waiting = await self._find_waiting(folder, old) if old else {}
        for portion in _portions(uids):
            moved = await self._match(folder, portion, old, waiting) if old else {}
            if moved:
                yield [], moved, _place(folder, portion[0], old)
            fresh = [uid for uid in portion if folder.external(uid) not in set(moved.values())]
            async for items, last in self._fetch_portions(folder, fresh):
                yield items, {}, _place(folder, last + 1, old)
            yield [], {}, _place(folder, portion[-1] + 1, old)
        yield [], {}, _place(folder, max(first, folder.next, (uids[-1] + 1) if uids else 1), ())

    async def _find_waiting(self, folder: Folder, old: Sequence[int]) -> dict[str, list[str]]:
        """The ids, by Message-ID, of mails that were fetched under the old numbers and that nobody has looked into."""
        found: dict[str, list[str]] = {}
        async for external, head in self.context.known.read_waiting():
            if external.startswith(folder.name_old(old)) and (id_ := read_message_id(cut_head(head))):
                found.setdefault(id_, []).append(external)
        return found

    async def _match(
        self, folder: Folder, uids: Sequence[int], old: Sequence[int], waiting: Mapping[str, Sequence[str]]
    ) -> dict[str, str]:
        """The ids that known mails had before the folder was renumbered, with those that they have now."""
        ids = await self.thread.run(self.mailbox.fetch_ids, uids)
        known = await self.context.known.find_externals([f"email::{id_}" for id_ in ids.values()])
        moved = dict[str, str]()
        often = {id_ for id_, n in Counter(ids.values()).items() if n > 1}
        for uid, id_ in ids.items():
            if id_ in often:  # they may be different mails: fetched again, they are told apart by their content
                continue
            candidates = [*known.get(f"email::{id_}", ()), *waiting.get(id_, ())]
            before = [one for one in candidates if one.startswith(folder.name_old(old)) and one not in moved]
            if before:
                moved[before[0]] = folder.external(uid)
        return moved

    async def _fetch_portions(self, folder: Folder, uids: Sequence[int]) -> AsyncIterator[tuple[list[RawItem], int]]:
        if not uids:
            return
        sizes = await self.thread.run(self.mailbox.find_sizes, uids)
        most = self.context.max_bytes
        large = {uid: size for uid, size in sizes if size > most}
        for portion in divide_by_size((uid, 0 if uid in large else size) for uid, size in sizes):
            wanted = [uid for uid in portion if uid not in large]
            mails, unread = await self._fetch_mails(wanted)
            check_blame(len(mails), unread)
            items = [RawItem(folder.external(uid), mail, None, folder.note) for uid, mail in sorted(mails.items())]
            refused = [uid for uid in portion if uid in large]
            items += [refuse_large(folder.external(uid), large[uid], most, folder.note) for uid in refused]
            items += [set_aside_refused(folder.external(uid), why, folder.note) for uid, why in unread.items()]
            yield items, portion[-1]

    async def _fetch_mails(self, uids: Sequence[int]) -> tuple[dict[int, bytes], dict[int, str]]:
        """These mails, and why the server does not give the others: one that is damaged there keeps no other away."""
        if not uids:
            return {}, {}
        try:
            return await self.thread.run(self.mailbox.fetch_mails, uids), {}
        except MailRefused as error:
            if len(uids) == 1:
                return {}, {uids[0]: str(error)}
        middle = len(uids) // 2
        first, last = await self._fetch_mails(uids[:middle]), await self._fetch_mails(uids[middle:])
        return first[0] | last[0], first[1] | last[1]

    async def list_ids(self) -> AsyncIterator[Sequence[Listed]]:
        for name in await self.thread.run(self.mailbox.list_folders):
            try:
                folder = await self.thread.run(self.mailbox.select, name)
            except MailRefused as error:
                if not any(sign in str(error) for sign in CLOSED):
                    raise  # what is in there may not be gone
                yield [Listed(name_refused(name), REFUSED)]
                continue
            for portion in _portions(await self.thread.run(self.mailbox.find_uids)):
                yield [Listed(folder.external(uid)) for uid in portion]

    async def fetch(self, ids: Sequence[str]) -> AsyncIterator[RawItem]:
        wanted = dict[str, dict[int, list[int]]]()
        for external in ids:
            name, _, rest = external.rpartition(";")[0].rpartition(";")
            uid = external.rpartition(";")[2]
            if rest.isdigit() and uid.isdigit():
                wanted.setdefault(name, {}).setdefault(int(rest), []).append(int(uid))
        there = set(await self.thread.run(self.mailbox.list_folders))
        for name, validities in wanted.items():
            if name not in there:
                continue
            folder = await self.thread.run(self.mailbox.select, name)
            async for items, _ in self._fetch_portions(folder, sorted(validities.get(folder.validity, []))):
                for item in items:
                    yield item


def name_refused(folder: str) -> str:
    """The id under which a folder that cannot be opened is set aside: no mail has the number 0."""
    return check_external(f"{folder};0;0")


def _portions(uids: Sequence[int]) -> Iterator[list[int]]:
    some = iter(uids)
    while portion := list(islice(some, PORTION)):
        yield portion


def cut_head(mail: bytes) -> bytes:
    """The headers of a mail, without the rest of it."""
    return re.split(rb"\r?\n\r?\n", mail.lstrip(), maxsplit=1)[0]


def _read_validities(old: int | list[int]) -> list[int]:
    """A checkpoint of an earlier version of this program has one number."""
    return [old] if isinstance(old, int) else old


def _place(folder: Folder, following: int, old: Sequence[int]) -> dict[str, Any]:
    place = {"validity": folder.validity, "next": following}
    return {**place, "old": list(old)} if old else place


@asynccontextmanager
async def open_mailbox(options: ImapOptions, max_bytes: int) -> AsyncGenerator[tuple[Mailbox, OneThread]]:
    credential = await read_credential(options)
    async with OneThread() as thread:
        mailbox = await thread.open(Mailbox, options, credential, max_bytes, close=Mailbox.abort)
        try:
            yield mailbox, thread
            await thread.run(mailbox.leave)
        except BaseException:
            mailbox.abort()  # a call may hang in its thread: this ends it
            raise


@asynccontextmanager
async def open_imap(options: ImapOptions, context: ConnectorContext) -> AsyncGenerator[Connector]:
    async with open_mailbox(options, context.max_bytes) as (mailbox, thread):
        yield ImapConnector(mailbox, thread, context)


@asynccontextmanager
async def watch_mailbox(options: ImapOptions) -> AsyncGenerator[Callable[[], Awaitable[bool]]]:
    """Waits until the server tells of a new mail in the first folder, or for half a minute."""
    async with open_mailbox(options, 0) as (mailbox, thread):
        names = await thread.run(mailbox.list_folders)
        await thread.run(mailbox.select, "INBOX" if "INBOX" in names or not names else names[0])
        yield lambda: thread.run(mailbox.idle, IDLE)


IMAP = Kind("imap", "A mailbox at a server, by IMAP.", ImapOptions, open_imap, describe_mail, watch=watch_mailbox)
