"""Tells an alarm to a webhook."""

from gristmill.alarms.channels.messages import AlarmMessage, write_slack
from gristmill.settings import FetchSettings, WebhookChannel, read_reference
from gristmill.sources import Fetcher


async def tell_webhook(channel: WebhookChannel, message: AlarmMessage, settings: FetchSettings) -> None:
    await Fetcher(settings).post(read_reference(channel.url), write_slack(message), key=message.key)
