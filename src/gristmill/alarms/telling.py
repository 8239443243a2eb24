"""Tells one channel of one alarm: a task of its own, retried alone."""

from datetime import datetime
from functools import partial

from gristmill.alarms.channels import AlarmMessage, tell_channel
from gristmill.alarms.letters import TellAlarm
from gristmill.alarms.model import Alarm, AlarmId
from gristmill.alarms.store import SQL, load_alarm, note_delivery
from gristmill.db import Database, Tx
from gristmill.errors import Permanent, Refused, Unknown
from gristmill.queue import Done, Skip
from gristmill.settings import AlarmSettings, Channel, Settings


async def tell_alarm(letter: TellAlarm, *, db: Database, settings: Settings) -> Done | Skip:
    channel = next((one for one in settings.alarms.channels if one.name == letter.channel), None)
    if channel is None:
        return Skip(f"there is no channel {letter.channel} any more")
    try:
        async with db.reading() as tx:
            alarm = await load_alarm(tx, AlarmId(letter.alarm))
    except Unknown:
        return Skip("the alarm is long over and forgotten")
    if letter.event != "over" and alarm.over_at is not None:
        return Skip("the alarm was over before anybody could be told")
    await _tell(channel, AlarmMessage(alarm, letter.event, letter.number), settings)
    write = partial(note_delivery, alarm=alarm.id, channel=channel.name, event=letter.event, number=letter.number)
    return Done(write=write)


async def _tell(channel: Channel, message: AlarmMessage, settings: Settings) -> None:
    try:
        await tell_channel(channel, message, settings)
    except Refused as refused:  # a secret is not where it should be: somebody must mend it, then replay the dead letter
        raise Permanent(str(refused)) from None


def find_channel(settings: AlarmSettings, name: str) -> Channel:
    for one in settings.channels:
        if one.name == name:
            return one
    known = ", ".join(one.name for one in settings.channels) or "none is set: see docs/alarms.md"
    raise Unknown(f"There is no channel “{name}” ({known}).")


async def try_channel(tx: Tx, settings: Settings, name: str) -> None:
    """Tell a channel of an alarm that is none, now and not by a task: whoever waits sees what is wrong."""
    channel = find_channel(settings.alarms, name)
    now = await tx.only_value(SQL["now"], datetime)
    await tell_channel(channel, AlarmMessage(_make_sample(now), "fired", now.microsecond), settings)


def _make_sample(now: datetime) -> Alarm:
    return Alarm(
        id=AlarmId(0),
        client="",
        project="",
        rule="test",
        subject="channel",
        level="critical",
        sentence="This is a test: alarms reach this channel.",
        advice="Nothing has to be done.",
        fired_at=now,
        seen_at=now,
        told_at=None,
        told=0,
        over_at=None,
        acknowledged_at=None,
        acknowledged_by=None,
        note=None,
    )
