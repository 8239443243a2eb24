"""What mail servers have in common: where they are, how we sign in, what goes wrong there."""

import asyncio
import shlex
import ssl
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from ipaddress import ip_address
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from gristmill.errors import Overloaded, Permanent, Transient
from gristmill.processes import run_program
from gristmill.settings import Reference, Slice, read_reference
from gristmill.sources.failures import name_place, read_words, say
from gristmill.sources.model import RawItem

TOKEN_PATIENCE = 30.0  # seconds until a program that makes a token is given up
BUSY = ("[UNAVAILABLE]", "[LIMIT]", "[INUSE]", "[IN-USE]", "[LOGIN-DELAY]", "[SYS/TEMP]", "[THROTTLED]", "too many")
PAUSE = timedelta(minutes=1)
LARGE = 8 << 20  # bytes of mails that are fetched and kept together …
MANY = 500  # … and how many
Security = Literal["tls", "starttls", "none"]


REFUSED = "refused"  # the mark of a mail that its server did not give: the next listing tries it again
MANY_REFUSED = 10  # mails in a row, and none that came: then the server is to blame, and not the mails


class MailRefused(Transient):
    """A server answers, and does not give what it was asked for: the line is good, and others may be asked for."""


class MailAccount(Slice):
    """A mailbox at a server."""

    usual_ports: ClassVar[tuple[int, int]]  # over TLS, and otherwise
    host: str = Field(min_length=1, description="The name of the server.")
    port: int | None = Field(default=None, ge=1, le=65535, description="Its port, if it is not the usual one.")
    security: Security = Field(default="tls", description="tls, starttls, or none (only on this machine).")
    user: str = Field(min_length=1, description="The name to sign in with.")
    password: Reference | None = Field(default=None, description="The password: env:NAME or file:/path.")
    token_command: str | None = Field(
        default=None, description="A program that prints an OAuth2 token, instead of a password (XOAUTH2)."
    )
    ca: str | None = Field(default=None, description="A file with certificates to trust besides the system's.")

    @model_validator(mode="after")
    def check_secrets(self) -> Self:
        if (self.password is None) == (self.token_command is None):
            raise ValueError("it needs a password or a token_command, one of the two")
        if self.security == "none" and not is_this_machine(self.host):
            raise ValueError("security=none would send the password in clear: it is for this machine alone")
        return self

    @property
    def door(self) -> int:
        """The port of the server."""
        return self.port or self.usual_ports[0 if self.security == "tls" else 1]

    @property
    def place(self) -> str:
        return name_place(self.host, self.door)

    def make_context(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self.ca:
            context.load_verify_locations(self.ca)
        return context


def is_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def read_credential(account: MailAccount) -> str:
    """The password, or a fresh token."""
    if account.token_command is None:
        assert account.password is not None
        return await asyncio.to_thread(read_reference, account.password)
    try:
        ended = await run_program(shlex.split(account.token_command), b"", patience=TOKEN_PATIENCE)
    except TimeoutError as error:
        raise Transient("The token_command did not end in time.") from error
    except OSError as error:
        raise Permanent(f"The token_command cannot be started ({error.strerror}).") from error
    token = ended.said.decode(errors="replace").strip().partition("\n")[0]
    if ended.code or not token:
        raise Permanent(f"The token_command gave no token (exit code {ended.code}).")
    return token


def explain_refusal(place: str, said: str | bytes, *, signing_in: bool) -> Exception:
    """The error that an answer of a mail server means; its words are kept short, and hold no secret of ours."""
    words = read_words(said)
    if any(sign.casefold() in words.casefold() for sign in BUSY):
        return Overloaded(say(f"{place} asks us to come again later", words), PAUSE)
    if signing_in:
        return Permanent(say(f"{place} does not let us in", words))
    return MailRefused(say(f"{place} refuses", words))


def set_aside_refused(external: str, error: str, note: dict[str, object]) -> RawItem:
    return RawItem(external, b"", REFUSED, note, f"It could not be fetched: {error}")


def check_blame(came: int, refused: Mapping[int, str]) -> None:
    """Transient where a server gives no mail at all: none of them is set aside for that."""
    if not came and len(refused) >= MANY_REFUSED:
        raise Transient(f"None of {len(refused)} mails could be fetched: {next(iter(refused.values()))}")


def divide_by_size(sizes: Iterable[tuple[int, int]]) -> Iterator[list[int]]:
    """Numbers of mails in portions that fit into memory and one transaction."""
    some, total = list[int](), 0
    for number, size in sizes:
        if some and (total + size > LARGE or len(some) >= MANY):
            yield some
            some, total = [], 0
        some.append(number)
        total += size
    if some:
        yield some
