"""Mail: headers and body as one Markdown page, attachments as parts."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.policy import Compat32
from email.utils import collapse_rfc2231_value, getaddresses, parsedate_to_datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, cast

from gristmill.documents.reading import refusals, tidy
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.open_files import File, OpenFile, read_file
from gristmill.documents.reading.plain import decode, decode_as, paginate, stem
from gristmill.documents.reading.portions import portion
from gristmill.documents.reading.results import BEGINNING, Bookmark, Inspection, PageText, Part, Type
from gristmill.documents.reading.web import html_text, markdown
from gristmill.errors import Permanent

# A head whose lines are headers, and what belongs to them, as nearly all are; and the empty line behind it.
HEAD = re.compile(rb"((?:[!-9;-~]++:[^\r\n]*+\r?\n(?:[ \t][^\r\n]*+\r?\n)*+)++)\r?\n")
FIELD = re.compile(r"([!-9;-~]++):[ \t]*+([^\r\n]*+(?:\r?\n[ \t][^\r\n]*+)*+)\r?\n")
LONGEST = 100_000  # characters of a header: some thousand addresses
PARAMETERS = 8_000  # … and of one that describes a part: its type, its file name
ENCODED = 8_000  # characters of a line with encoded words; what is never closed is looked for as often as it is opened
TOO_DEEP = "The mail has parts within parts, too deep to be read."
SHOWN = ("From", "To", "Cc", "Date", "Subject")
TELL_APART = ("From", "Date", "Subject")  # what no server changes on the way of a mail
TELLING = (
    "auto-submitted",
    "precedence",
    "list-unsubscribe",
    "list-id",
    "x-auto-response-suppress",
    "x-autoreply",
    "x-failed-recipients",
    "return-path",
    "importance",
    "x-priority",
)
LONGEST_TELLING = 200  # characters that are kept of one of them
SIGNATURES = frozenset(["application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"])
SECRETS = frozenset(["application/pgp-encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"])
SUFFIXES = {"text/plain": ".txt", "text/html": ".html", "text/csv": ".csv", "application/pdf": ".pdf"}


class BriefHeaders(Compat32):
    """Cuts endless headers before anybody takes them apart, which may take the square of their length."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, cut_header(name, value)


def cut_header(name: str, value: str) -> str:
    return shorten(value, PARAMETERS if name.lower().startswith("content-") else LONGEST)


def shorten(value: str, longest: int = LONGEST) -> str:
    return value if len(value) <= longest else value[:longest] + " …"


POLICY = BriefHeaders(mangle_from_=False)


@dataclass
class OpenedMail:
    """A mail, taken apart."""

    message: Message
    texts: list[str] = field(default_factory=list[str])
    parts: list[tuple[str, Message]] = field(default_factory=list[tuple[str, Message]])
    signed: bool = False
    is_whole: bool = False  # it was taken apart to its end

    def take_apart(self, depth: int) -> None:
        """Find its texts and parts, once."""
        if self.is_whole:
            return
        self.texts, self.parts = [], []
        _take_apart(self, self.message, depth)
        self.is_whole = True

    @cached_property
    def pages(self) -> list[str]:
        return _pages(self)

    @cached_property
    def digest(self) -> bytes:
        """Of what a person sees: the same in every copy of a mail, whatever servers added on its way."""
        words = "\n\n".join(self.texts).split()
        attached = (f"{name} {sha256(payload(part)).hexdigest()}" for name, part in self.parts)
        return make_digest(self.message, [*words, *attached])


def inspect(path: File, name: str, type: Type, limits: Limits, start: Bookmark = BEGINNING) -> Inspection:
    mail = _open_mail(path, limits)
    if len(mail.parts) > limits.parts:
        raise refusals.too_many("attachments", len(mail.parts), limits.parts)
    if len(mail.pages) > limits.pages:
        raise refusals.too_many("pages", len(mail.pages), limits.pages)
    parts = portion(_attachments(mail, start.parts))
    return Inspection(
        type="mail",
        pages=len(mail.pages),
        title=header(mail.message, "Subject")[:300] or stem(name),
        meta=_meta(mail),
        written_at=date(mail.message),
        parts=parts,
        more=start.parts + len(parts) < len(mail.parts),
    )


def read(path: File, type: Type, number: int, limits: Limits) -> PageText:
    pages = _open_mail(path, limits).pages
    if not 1 <= number <= len(pages):
        raise refusals.no_such_page(number, len(pages))
    return PageText(pages[number - 1], "text")


def _open_mail(path: File, limits: Limits) -> OpenedMail:
    mail = mails.get(path)
    mail.take_apart(limits.depth)
    return mail


def _parse_mail(path: File) -> OpenedMail:
    data = read_file(path)
    if looks_wide(data):  # somebody saved the mail as text of two-byte characters
        data = decode(data).encode()
    data = data.lstrip()
    try:
        return OpenedMail(parse_simple(data) or BytesParser(policy=POLICY).parsebytes(data))
    except RecursionError as error:
        raise Permanent(TOO_DEEP) from error


def parse_simple(data: bytes) -> Message | None:
    """A mail in one part and in good order, as the library would parse it, in a tenth of its time; else None."""
    head = HEAD.match(data)
    if head is None:
        return None
    message: Message = Message(policy=POLICY)
    for name, value in FIELD.findall(head[1].decode("ascii", "surrogateescape")):
        message.set_raw(name, cut_header(name, value))
    if message.get_content_maintype() in ("multipart", "message"):
        return None
    message.set_payload(data[head.end() :].decode("ascii", "surrogateescape"))
    return message


mails = OpenFile(_parse_mail)


def make_digest(message: Message, content: Iterable[str]) -> bytes:
    said = (header(message, name) for name in TELL_APART)
    return sha256("\n".join([*said, *content]).encode("utf-8", "replace")).digest()


def looks_wide(data: bytes) -> bool:
    return data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")) or b"\0" in data[:64]


# --- taking apart


def _take_apart(mail: OpenedMail, part: Message, depth: int, *, heard: bool = False) -> None:
    """`heard`: another form of the same text was read already, so that only the attachments are wanted."""
    if depth < 0:
        raise Permanent(TOO_DEEP)
    kind = part.get_content_type()
    if kind == "multipart/encrypted" or (kind in SECRETS and part is mail.message):
        raise Permanent("The mail is encrypted: decrypt it in a mail program and add it again.")
    if kind == "multipart/alternative":
        _take_best(mail, part, depth, heard=heard)
    elif part.is_multipart() and kind not in ("message/rfc822", "message/delivery-status"):
        for inner in children(part):
            _take_apart(mail, inner, depth - 1, heard=heard)
    elif kind in SIGNATURES:
        mail.signed = True
    elif kind == "message/delivery-status":
        mail.texts.append("\n\n".join(_fields(block) for block in children(part)))
    elif _is_body(part, kind):
        mail.texts += () if heard else (_text(part, kind),)
    else:
        mail.parts.append((_name(part, kind, len(mail.parts) + 1), part))


def _take_best(mail: OpenedMail, part: Message, depth: int, *, heard: bool) -> None:
    """Of the same text in several forms: plain if it says anything, else HTML; what is neither is a part."""
    for inner in children(part):
        trial = OpenedMail(mail.message)
        _take_apart(trial, inner, depth - 1, heard=heard)
        if any(text.strip() for text in trial.texts):
            mail.texts += trial.texts
            heard = True
        mail.parts += trial.parts


def children(part: Message) -> list[Message]:
    inner = part.get_payload()
    return [child for child in cast(list[Any], inner) if isinstance(child, Message)] if isinstance(inner, list) else []


def _is_body(part: Message, kind: str) -> bool:
    """A container that holds nothing has lost its boundary, and what is left of it is text."""
    shown = kind in ("text/plain", "text/html") or kind.startswith("multipart/")
    return shown and part.get_content_disposition() != "attachment"


def _fields(block: Message) -> str:
    return "\n".join(f"{key}: {value}" for key, value in block.items())


def _text(part: Message, kind: str) -> str:
    data = payload(part)
    if kind == "text/html":
        return markdown(_decode_part(part, data) if part.get_param("charset") else html_text(data))
    return _decode_part(part, data)


def _decode_part(part: Message, data: bytes) -> str:
    """By the encoding that the mail names, when that is one and it fits; by its bytes otherwise."""
    charset = str(part.get_content_charset() or "").strip("\"' ;")
    if charset and charset not in ("us-ascii", "unknown-8bit", "default"):
        try:
            return decode_as(data, charset)
        except (UnicodeDecodeError, LookupError, ValueError):
            pass
    return decode(data)


def payload(part: Message) -> bytes:
    """Its bytes; of a mail within a mail the mail."""
    if part.get_content_type() == "message/rfc822" and children(part):
        try:
            return children(part)[0].as_bytes(policy=POLICY)
        except RecursionError as error:
            raise Permanent(TOO_DEEP) from error
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else str(part.get_payload()).encode("utf-8", "surrogateescape")


def _name(part: Message, kind: str, number: int) -> str:
    """What the sender called it, as a file name."""
    if kind == "message/rfc822":
        inner = children(part)
        return f"{(header(inner[0], 'Subject') if inner else '') or f'message {number}'}.eml".replace("/", "-")[:200]
    try:
        said = part.get_filename() or part.get_param("name") or ""
    except (ValueError, LookupError, TypeError):  # broken RFC 2231 parameters
        said = ""
    name = unfold(collapse_rfc2231_value(said)).replace("\\", "/").split("/")[-1]
    return name[-200:] or f"attachment {number}{SUFFIXES.get(kind, '')}"


def _attachments(mail: OpenedMail, offset: int) -> Iterator[Part]:
    for number, (name, part) in enumerate(mail.parts[offset:], offset + 1):
        yield Part(name, payload(part), f"attachment={number}")


# --- what is shown


def _pages(mail: OpenedMail) -> list[str]:
    lines = [f"**{name}:** {value}" for name in SHOWN if (value := header(mail.message, name))]
    if mail.parts:
        lines.append(f"**Attachments:** {', '.join(name for name, _ in mail.parts)}")
    body = "\n\n".join(text.strip("\r\n") for text in mail.texts if text.strip())
    return paginate(tidy.tidy("  \n".join(lines) + "\n\n" + body))


def _meta(mail: OpenedMail) -> dict[str, object]:
    message = mail.message
    return tidy.meta(
        {
            "from": addresses(message, "From"),
            "to": addresses(message, "To"),
            "cc": addresses(message, "Cc"),
            "date": header(message, "Date"),
            "subject": header(message, "Subject"),
            "message_id": header(message, "Message-ID"),
            "digest": mail.digest.hex(),
            "in_reply_to": header(message, "In-Reply-To"),
            "references": re.findall(r"<[^<>\s]+>", header(message, "References")),
            "attachments": [name for name, _ in mail.parts],
            "signed": mail.signed or None,
            "headers": _telling_headers(message),
        }
    )


def _telling_headers(message: Message) -> dict[str, str]:
    """The headers by which programs say that nobody wrote the mail: answers by themselves, bounces, newsletters."""
    raw = _heads(message).raw
    found = {name: header(message, name)[:LONGEST_TELLING] for name in TELLING if name in raw}
    found["content-type"] = _telling_type(message)
    return {name: value for name, value in found.items() if value}


def _telling_type(message: Message) -> str:
    """The type of a report or of an answer to an invitation; other types say nothing."""
    near = [message, *children(message), *(inner for part in children(message) for inner in children(part))]
    for part in near:
        kind = part.get_content_type()
        detail = {"multipart/report": "report-type", "text/calendar": "method"}.get(kind)
        if detail:
            said = part.get_param(detail)
            return tidy.to_line(f"{kind}; {detail}={said}")[:LONGEST_TELLING] if isinstance(said, str) else kind
    return ""


def header(message: Message, name: str) -> str:
    """All values of a header on one line, decoded as well as possible."""
    found = _heads(message)
    plain = name.lower()
    if plain not in found.raw:  # most of those that are asked for
        return ""
    if plain not in found.plain:
        found.plain[plain] = shorten(", ".join(filter(None, map(unfold, found.raw[plain]))))
    return found.plain[plain]


@dataclass
class _Heads:
    """The headers of a message by their names, as they came, and those that somebody asked for."""

    raw: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    plain: dict[str, str] = field(default_factory=dict[str, str])


def _heads(message: Message) -> _Heads:
    """The headers, kept with the message: a reader asks for a dozen of them, and for some of them several times."""
    found: _Heads | None = vars(message).get("heads")
    if found is None:
        found = vars(message)["heads"] = _Heads()
        for key, value in message.raw_items():
            found.raw.setdefault(key.lower(), []).append(value)
    return found


def unfold(value: str) -> str:
    """Encoded words to text; raw bytes that came without being encoded, too."""
    if value.isascii() and "=?" not in value and len(value) <= ENCODED:
        return tidy.to_line(value)
    raw = value.encode("utf-8", "surrogateescape")
    if not raw.isascii():
        value = decode(raw)
    if max(map(len, value.splitlines()), default=0) > ENCODED:
        return tidy.to_line(value)
    try:
        pieces = [_word(piece, charset) for piece, charset in decode_header(value)]
    except (ValueError, LookupError):  # broken base64
        return tidy.to_line(value)
    return tidy.to_line("".join(pieces)) or tidy.to_line(value)


def _word(piece: bytes | str, charset: str | None) -> str:
    if isinstance(piece, str):
        return piece
    try:
        return piece.decode(charset or "ascii")
    except (LookupError, UnicodeDecodeError, ValueError):
        return decode(piece)


def addresses(message: Message, name: str) -> list[str]:
    return list(_read_addresses(header(message, name)))


@lru_cache(maxsize=8)
def _read_addresses(said: str) -> tuple[str, ...]:
    if not said:
        return ()
    try:
        found = getaddresses([said])
    except RecursionError:  # brackets within brackets, a thousand deep
        return (tidy.to_line(said)[:300],)
    return tuple(f"{_quote_name(who)} <{address}>" if who else address for who, address in found if address)


def _quote_name(who: str) -> str:
    """The name in quotes if it has a sign, like a comma, that would divide it."""
    return '"' + who.replace('"', "'") + '"' if re.search(r'[,;:<>@"()]', who) else who


def date(message: Message) -> datetime | None:
    """When it was written, if it says so in any way that is known."""
    return _read_date(header(message, "Date"))


@lru_cache(maxsize=1)
def _read_date(said: str) -> datetime | None:
    for reader in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            found = reader(said)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None
