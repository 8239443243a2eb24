"""Mail: headers and body as one Markdown page, attachments as parts."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.header import decode_header
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from email.utils import collapse_rfc2231_value, getaddresses, parsedate_to_datetime
from pathlib import Path
from typing import Any, cast

from gristmill.documents.reading import refusals, tidy
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.plain import decoded, decoded_as, paginated, stem
from gristmill.documents.reading.recent import Recent
from gristmill.documents.reading.results import Inspection, PageText, Part, Type
from gristmill.documents.reading.web import html_text, markdown
from gristmill.errors import Permanent

PORTION = 16 << 20  # bytes of parts in one answer
SHOWN = ("From", "To", "Cc", "Date", "Subject")
SIGNATURES = frozenset(["application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature"])
SECRETS = frozenset(["application/pgp-encrypted", "application/pkcs7-mime", "application/x-pkcs7-mime"])
SUFFIXES = {"text/plain": ".txt", "text/html": ".html", "text/csv": ".csv", "application/pdf": ".pdf"}


@dataclass
class Opened:
    """A mail, taken apart."""

    message: Message
    texts: list[str] = field(default_factory=list[str])
    parts: list[tuple[str, Message]] = field(default_factory=list[tuple[str, Message]])
    signed: bool = False


def inspect(path: str, name: str, type: Type, limits: Limits, offset: int = 0) -> Inspection:
    mail = _opened(path, limits)
    if len(mail.parts) > limits.parts:
        raise refusals.too_many("attachments", len(mail.parts), limits.parts)
    parts = tuple(_portion(mail, offset))
    return Inspection(
        type="mail",
        pages=len(_pages(mail)),
        title=header(mail.message, "Subject")[:300] or stem(name),
        meta=_meta(mail),
        written_at=date(mail.message),
        parts=parts,
        more=offset + len(parts) < len(mail.parts),
    )


def read(path: str, type: Type, number: int, limits: Limits) -> PageText:
    pages = _pages(_opened(path, limits))
    if not 1 <= number <= len(pages):
        raise refusals.no_such_page(number, len(pages))
    return PageText(pages[number - 1], "text")


def _opened(path: str, limits: Limits) -> Opened:
    mail = parsed.get(path)
    if not mail.texts and not mail.parts:
        _take_apart(mail, mail.message, limits.depth)
    return mail


def _parsed(path: str) -> Opened:
    data = Path(path).read_bytes()
    if looks_wide(data):  # somebody saved the mail as text of two-byte characters
        data = decoded(data).encode()
    try:
        return Opened(BytesParser(policy=compat32).parsebytes(data.lstrip()))
    except RecursionError as error:
        raise Permanent("The mail has parts within parts, too deep to be read.") from error


parsed = Recent(_parsed)


def looks_wide(data: bytes) -> bool:
    return data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")) or b"\0" in data[:64]


# --- taking apart


def _take_apart(mail: Opened, part: Message, depth: int) -> None:
    if depth < 0:
        raise Permanent("The mail has parts within parts, too deep to be read.")
    kind = part.get_content_type()
    if kind == "multipart/encrypted" or (kind in SECRETS and part is mail.message):
        raise Permanent("The mail is encrypted: decrypt it in a mail program and add it again.")
    if kind == "multipart/alternative":
        _take_best(mail, part, depth)
    elif part.is_multipart() and kind not in ("message/rfc822", "message/delivery-status"):
        for inner in children(part):
            _take_apart(mail, inner, depth - 1)
    elif kind in SIGNATURES:
        mail.signed = True
    elif kind == "message/delivery-status":
        mail.texts.append("\n\n".join(_fields(block) for block in children(part)))
    elif _is_body(part, kind):
        mail.texts.append(_text(part, kind))
    else:
        mail.parts.append((_name(part, kind, len(mail.parts) + 1), part))


def _take_best(mail: Opened, part: Message, depth: int) -> None:
    """Of the same text in several forms: plain if it says anything, else HTML; what is neither is a part."""
    trials: list[Opened] = []
    for inner in children(part):
        trial = Opened(mail.message)
        _take_apart(trial, inner, depth - 1)
        trials.append(trial)
    spoken = [trial for trial in trials if any(text.strip() for text in trial.texts)]
    if spoken:
        mail.texts += spoken[0].texts
    for trial in trials:
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
        return markdown(_decoded(part, data) if part.get_param("charset") else html_text(data))
    return _decoded(part, data)


def _decoded(part: Message, data: bytes) -> str:
    """By the encoding that the mail names, when that is one and it fits; by its bytes otherwise."""
    charset = str(part.get_content_charset() or "").strip("\"' ;")
    if charset and charset not in ("us-ascii", "unknown-8bit", "default"):
        try:
            return decoded_as(data, charset)
        except (UnicodeDecodeError, LookupError, ValueError):
            pass
    return decoded(data)


def payload(part: Message) -> bytes:
    """Its bytes; of a mail within a mail the mail."""
    if part.get_content_type() == "message/rfc822" and children(part):
        return children(part)[0].as_bytes(policy=compat32.clone(mangle_from_=False))
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
    name = unfolded(collapse_rfc2231_value(said)).replace("\\", "/").split("/")[-1]
    return name[-200:] or f"attachment {number}{SUFFIXES.get(kind, '')}"


def _portion(mail: Opened, offset: int) -> Iterator[Part]:
    """The parts from `offset` on: at least one, and then as many as fit."""
    room = PORTION
    for number, (name, part) in enumerate(mail.parts[offset:], offset + 1):
        data = payload(part)
        room -= len(data)
        if room < 0 and number > offset + 1:
            return
        yield Part(name, data, f"attachment={number}")


# --- what is shown


def _pages(mail: Opened) -> list[str]:
    lines = [f"**{name}:** {value}" for name in SHOWN if (value := header(mail.message, name))]
    if mail.parts:
        lines.append(f"**Attachments:** {', '.join(name for name, _ in mail.parts)}")
    body = "\n\n".join(text.strip("\r\n") for text in mail.texts if text.strip())
    return paginated(tidy.tidy("  \n".join(lines) + "\n\n" + body))


def _meta(mail: Opened) -> dict[str, object]:
    message = mail.message
    return tidy.meta(
        {
            "from": addresses(message, "From"),
            "to": addresses(message, "To"),
            "cc": addresses(message, "Cc"),
            "date": header(message, "Date"),
            "subject": header(message, "Subject"),
            "message_id": header(message, "Message-ID"),
            "in_reply_to": header(message, "In-Reply-To"),
            "references": re.findall(r"<[^<>\s]+>", header(message, "References")),
            "attachments": [name for name, _ in mail.parts],
            "signed": mail.signed or None,
        }
    )


def header(message: Message, name: str) -> str:
    """All values of a header on one line, decoded as well as possible."""
    values = [value for key, value in message.raw_items() if key.lower() == name.lower()]
    return ", ".join(filter(None, map(unfolded, values)))


def unfolded(value: str) -> str:
    """Encoded words to text; raw bytes that came without being encoded, too."""
    raw = value.encode("utf-8", "surrogateescape")
    if not raw.isascii():
        value = decoded(raw)
    try:
        pieces = [_word(piece, charset) for piece, charset in decode_header(value)]
    except (ValueError, LookupError):  # broken base64
        return tidy.line(value)
    return tidy.line("".join(pieces)) or tidy.line(value)


def _word(piece: bytes | str, charset: str | None) -> str:
    if isinstance(piece, str):
        return piece
    try:
        return piece.decode(charset or "ascii")
    except (LookupError, UnicodeDecodeError, ValueError):
        return decoded(piece)


def addresses(message: Message, name: str) -> list[str]:
    said = header(message, name)
    try:
        found = getaddresses([said])
    except RecursionError:  # brackets within brackets, a thousand deep
        return [tidy.line(said)[:300]]
    return [f"{_quoted(who)} <{address}>" if who else address for who, address in found if address]


def _quoted(who: str) -> str:
    """As it must be written lest a comma in it divides it."""
    return '"' + who.replace('"', "'") + '"' if re.search(r'[,;:<>@"()]', who) else who


def date(message: Message) -> datetime | None:
    """When it was written, if it says so in any way that is known."""
    said = header(message, "Date")
    for reader in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            found = reader(said)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None
