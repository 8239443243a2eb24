"""What a mail says of itself, in one look: its ids, its people, its text; and what of the text is new."""

import re
from dataclasses import dataclass
from datetime import datetime
from email.message import Message
from email.parser import BytesParser
from hashlib import sha256

from gristmill.documents.reading import mail
from gristmill.documents.reading.limits import Limits
from gristmill.errors import Permanent

ID = re.compile(r"<([^<>\s]{1,500})>")
HEAD_END = re.compile(rb"\r?\n\r?\n")
HEADERS = ("From", "To", "Cc", "Date", "Subject", "Message-ID", "Received", "Return-Path")
LONGEST_ID = 500  # characters; a longer one is known by its hash
MOST_REFERENCES = 100
LONGEST_TEXT = 1_000_000  # characters that are looked through for links


@dataclass(frozen=True)
class MailSummary:
    """A mail without its attachments; ids are without their brackets."""

    message_id: str  # made of its content if it has none
    answers: tuple[str, ...]  # the mails before it in its thread, the first one first
    subject: str
    senders: tuple[str, ...]
    recipients: tuple[str, ...]
    written_at: datetime | None
    text: str
    digest: bytes  # the same for the same mail in another folder, whatever servers added on its way


def summarize_mail(data: bytes) -> MailSummary:
    """Permanent if it is no mail at all."""
    opened = mail.mails.get(data)
    message = opened.message
    if not any(message.get(name) is not None for name in HEADERS):
        raise Permanent("It is no mail: it has none of the headers that every mail has.")
    text, digest = _read_content(opened, data)
    return MailSummary(
        message_id=_shorten_id(mail.header(message, "Message-ID")) or f"sha256-{digest.hex()[:40]}",
        answers=_find_answered(message),
        subject=mail.header(message, "Subject")[:300],
        senders=tuple(mail.addresses(message, "From")),
        recipients=(*mail.addresses(message, "To"), *mail.addresses(message, "Cc")),
        written_at=mail.date(message),
        text=text[:LONGEST_TEXT],
        digest=digest,
    )


def read_message_id(head: bytes) -> str:
    """The id in the head of a mail, as `summarize_mail` finds it; empty if there is none."""
    return _shorten_id(mail.header(BytesParser(policy=mail.POLICY).parsebytes(head.lstrip()), "Message-ID"))


def _read_content(opened: mail.OpenedMail, data: bytes) -> tuple[str, bytes]:
    """Its text and its digest, however little can be read: a broken or encrypted mail is a mail all the same."""
    try:
        opened.take_apart(Limits().depth)
        return "\n\n".join(opened.texts), opened.digest
    except (Permanent, RecursionError):
        body = b"".join(HEAD_END.split(data.lstrip(), maxsplit=1)[1:])
        return "", mail.make_digest(opened.message, [sha256(b"".join(body.split())).hexdigest()])


def _shorten_id(said: str) -> str:
    found = ID.search(said)
    plain = found[1] if found else said.strip("<> \t")
    return plain if len(plain) <= LONGEST_ID else f"sha256-{sha256(plain.encode()).hexdigest()[:40]}"


def _find_answered(message: Message) -> tuple[str, ...]:
    """The chain of References, then In-Reply-To: some programs write only one of them."""
    ids = ID.findall(mail.header(message, "References"))
    ids = [*ids[:1], *ids[1:][-MOST_REFERENCES:]]
    return tuple(dict.fromkeys([*ids, *ID.findall(mail.header(message, "In-Reply-To"))[:1]]))
