"""Mails of agents: how they are addressed and written, for drafts and for those that are sent."""

import re
from email.message import EmailMessage
from typing import Annotated

from pydantic import AfterValidator, Field

from gristmill.agents.tools.model import Arguments

ADDRESS = re.compile(r"[^@\s<>,;:\"()\[\]\\]{1,64}@[^@\s<>,;:\"()\[\]\\]{1,255}")
MOST_RECIPIENTS = 50


def _check_address(address: str) -> str:
    if not ADDRESS.fullmatch(address) or not address.isascii() or not address.isprintable():
        raise ValueError(f"“{address}” is no bare mail address: write anna@example.org")
    return address


Recipient = Annotated[str, AfterValidator(_check_address)]


class Mail(Arguments):
    """A mail."""

    to: list[Recipient] = Field(min_length=1, max_length=MOST_RECIPIENTS, description="Bare addresses, without names.")
    subject: str = Field(min_length=1, max_length=300, pattern=r"^[^\r\n]+$", description="One line.")
    text: str = Field(min_length=1, max_length=100_000, description="The text, without a signature.")
    cc: list[Recipient] = Field(default_factory=list[str], max_length=MOST_RECIPIENTS, description="Who gets a copy.")


def write_mail(mail: Mail, *, sender: str, key: str) -> EmailMessage:
    """The Message-ID is made of the key: a reader who gets the mail twice can see that it is one mail."""
    message = EmailMessage()
    message["From"] = sender
    message["To"] = ", ".join(mail.to)
    if mail.cc:
        message["Cc"] = ", ".join(mail.cc)
    message["Subject"] = mail.subject
    message["Message-ID"] = f"<{key}@{sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(mail.text)
    return message


def describe(mail: Mail) -> str:
    return f"to {', '.join([*mail.to, *mail.cc])}: {mail.subject}."
