"""Alarms: what is not as it should be, told once, again after a while, and when it is over."""

from gristmill.alarms.model import Alarm, AlarmId, Delivery, Event, States
from gristmill.alarms.store import (
    acknowledge,
    count_alarms,
    explain_silence,
    list_alarms,
    list_deliveries,
    load_alarm,
)
from gristmill.alarms.telling import find_channel, try_channel

__all__ = [
    "Alarm",
    "AlarmId",
    "Delivery",
    "Event",
    "States",
    "acknowledge",
    "count_alarms",
    "explain_silence",
    "find_channel",
    "list_alarms",
    "list_deliveries",
    "load_alarm",
    "try_channel",
]
