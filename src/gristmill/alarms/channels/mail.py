"""Tells an alarm by e-mail."""

import asyncio
import smtplib
import ssl
from email.message import EmailMessage

from gristmill.alarms.channels.messages import Message, write_mail
from gristmill.errors import Permanent, Transient
from gristmill.settings import EmailChannel, read_reference

TIMEOUT = 30.0  # seconds for one answer of the server


async def tell_by_mail(channel: EmailChannel, message: Message) -> None:
    mail = write_mail(message, sender=channel.sender, to=channel.to)
    password = read_reference(channel.password) if channel.password else None
    await asyncio.to_thread(_send, channel, mail, password)


def _send(channel: EmailChannel, mail: EmailMessage, password: str | None) -> None:
    whom = f"The mail server {channel.host}:{channel.port}"
    try:
        with _connect(channel) as server:
            if channel.user and password:
                server.login(channel.user, password)
            server.send_message(mail, channel.sender, list(channel.to))
    except smtplib.SMTPAuthenticationError as error:
        # `from None`: the answer of a server may repeat what it was sent
        raise Permanent(f"{whom} refuses the login of {channel.user} ({error.smtp_code}).") from None
    except smtplib.SMTPRecipientsRefused as error:
        raise _judge(max(code for code, _ in error.recipients.values()), f"{whom} refuses the recipients") from None
    except smtplib.SMTPResponseException as error:
        raise _judge(error.smtp_code, f"{whom} refuses the mail") from None
    except smtplib.SMTPNotSupportedError:
        raise Permanent(f"{whom} does not offer {channel.security}, or no login: change the channel.") from None
    except ssl.SSLCertVerificationError as error:
        raise Permanent(f"The certificate of {channel.host} is not valid: {error.verify_message}.") from None
    except (smtplib.SMTPException, OSError) as error:
        raise Transient(f"{whom} did not answer: {type(error).__name__}.") from None


def _connect(channel: EmailChannel) -> smtplib.SMTP:
    if channel.security == "tls":
        return smtplib.SMTP_SSL(channel.host, channel.port, timeout=TIMEOUT, context=ssl.create_default_context())
    server = smtplib.SMTP(channel.host, channel.port, timeout=TIMEOUT)
    if channel.security == "starttls":
        try:
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server


def _judge(code: int, sentence: str) -> Permanent | Transient:
    kind = Permanent if code >= 500 else Transient
    return kind(f"{sentence} ({code}).")
