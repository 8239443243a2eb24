"""Channels: how an alarm reaches somebody."""

from typing import assert_never

from gristmill.alarms.channels.command import tell_command
from gristmill.alarms.channels.mail import tell_by_mail
from gristmill.alarms.channels.messages import AlarmMessage
from gristmill.alarms.channels.webhook import tell_webhook
from gristmill.settings import Channel, CommandChannel, EmailChannel, Settings, WebhookChannel

__all__ = ["AlarmMessage", "tell_channel"]


async def tell_channel(channel: Channel, message: AlarmMessage, settings: Settings) -> None:
    """Transient if the other side may take it later, Permanent if somebody must change something first."""
    match channel:
        case WebhookChannel():
            await tell_webhook(channel, message, settings.fetch)
        case EmailChannel():
            await tell_by_mail(channel, message)
        case CommandChannel():
            await tell_command(channel, message)
        case _:
            assert_never(channel)
