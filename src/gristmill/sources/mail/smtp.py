"""Sends mail by SMTP, and says of every failure whether the server may have taken the mail."""

import asyncio
import smtplib
import ssl
from collections.abc import Sequence
from contextlib import suppress
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate

from gristmill.errors import Permanent, Transient, Unsent
from gristmill.settings import MailServer, read_reference
from gristmill.sources.failures import explain_failure

TIMEOUT = 30.0  # seconds for one answer of the server


async def send_mail(server: MailServer, mail: EmailMessage, to: Sequence[str], *, partly: bool = False) -> None:
    """Send a mail to all of these, or, `partly`, to those of them that the server takes.

    Permanent if the server refuses it, Unsent if it was not given to the server, Transient if nobody knows.
    """
    password = await asyncio.to_thread(read_reference, server.password) if server.password else None
    if "Date" not in mail:
        mail["Date"] = formatdate()  # a mail without one is taken for spam
    await asyncio.to_thread(_send, server, mail, to, password, partly)


def _send(server: MailServer, mail: EmailMessage, to: Sequence[str], password: str | None, partly: bool) -> None:
    whom = f"The mail server {server.host}:{server.port}"
    try:
        connection = _connect(server)
        try:
            if server.user and password:
                connection.login(server.user, password)
            _check(*connection.mail(server.sender), f"{whom} refuses the sender")
            _name_recipients(connection, to, whom, partly)
            _give(connection, mail.as_bytes(policy=SMTP), whom)
        finally:
            _take_leave(connection)
    except smtplib.SMTPAuthenticationError as error:
        # `from None`: the answer of a server may repeat what it was sent
        raise Permanent(f"{whom} refuses the login of {server.user} ({error.smtp_code}).") from None
    except smtplib.SMTPResponseException as error:
        raise _judge(error.smtp_code, f"{whom} refuses us") from None
    except smtplib.SMTPNotSupportedError:
        raise Permanent(f"{whom} does not offer {server.security}, or no login: change its settings.") from None
    except ssl.SSLCertVerificationError as error:
        raise Permanent(f"The certificate of {server.host} is not valid: {error.verify_message}.") from None
    except (smtplib.SMTPException, OSError) as error:
        raise Unsent(explain_failure(whom, error)) from None


def _name_recipients(connection: smtplib.SMTP, to: Sequence[str], whom: str, partly: bool) -> None:
    answers = [connection.rcpt(one)[0] for one in to]
    refused = [code for code in answers if code not in (250, 251)]
    if refused and not (partly and len(refused) < len(answers)):
        raise _judge(max(refused), f"{whom} refuses {'a recipient' if len(to) > 1 else 'the recipient'}")


def _give(connection: smtplib.SMTP, content: bytes, whom: str) -> None:
    """From here on the server may have the mail, also if we do not hear so."""
    try:
        code, _ = connection.data(content)
    except smtplib.SMTPResponseException as error:
        raise _judge(error.smtp_code, f"{whom} refuses the mail") from None
    except (smtplib.SMTPException, OSError):
        raise Transient(f"{whom} did not say whether it took the mail.") from None
    _check(code, b"", f"{whom} refuses the mail")


def _take_leave(connection: smtplib.SMTP) -> None:
    """Whether the mail was taken is known by now: how the server says goodbye changes nothing about it."""
    try:
        with suppress(smtplib.SMTPException, OSError):
            connection.quit()
    finally:
        connection.close()


def _connect(server: MailServer) -> smtplib.SMTP:
    if server.security == "tls":
        return smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT, context=ssl.create_default_context())
    connection = smtplib.SMTP(server.host, server.port, timeout=TIMEOUT)
    try:
        if server.security == "starttls":
            connection.starttls(context=ssl.create_default_context())
        connection.ehlo_or_helo_if_needed()
    except BaseException:
        connection.close()
        raise
    return connection


def _check(code: int, _: bytes, sentence: str) -> None:
    if code != 250:
        raise _judge(code, sentence)


def _judge(code: int, sentence: str) -> Permanent | Unsent:
    kind = Permanent if code >= 500 else Unsent
    return kind(f"{sentence} ({code}).")
