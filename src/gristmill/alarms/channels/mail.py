"""Tells an alarm by e-mail."""

from gristmill.alarms.channels.messages import AlarmMessage, write_mail
from gristmill.settings import EmailChannel
from gristmill.sources import send_mail


async def tell_by_mail(channel: EmailChannel, message: AlarmMessage) -> None:
    """To all who can be reached: one address that is gone must not keep the others from it."""
    await send_mail(channel, write_mail(message, sender=channel.sender, to=channel.to), channel.to, partly=True)
