"""Alarms in the database: what is there, who knows of it, and when the rules were looked at."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gristmill.alarms.model import Alarm, AlarmId, Delivery, Event, States
from gristmill.db import Tx, queries
from gristmill.errors import Unknown
from gristmill.scopes import Scope, visible
from gristmill.wording import format_span

SQL = queries("gristmill.alarms", "alarms.sql")
ENDLESS = 2**63 - 1
LATE = timedelta(minutes=5)  # the rules are looked at every minute
LONGEST_NOTE = 1_000  # characters


@dataclass(frozen=True)
class AlarmRound:
    """When the rules were looked at last."""

    at: datetime | None
    age: timedelta | None


async def count_alarms(tx: Tx) -> int:
    """How many alarms nobody has acknowledged, of those that are seen from here: the number at the bell."""
    return await tx.only_value(SQL["count_firing"], int)


async def list_alarms(tx: Tx, states: States = "open", *, before: int | None = None, limit: int = 100) -> list[Alarm]:
    """The newest alarms; `before` continues behind the last one of the list before."""
    asked: dict[str, Any] = {"before": ENDLESS if before is None else before, "limit": limit}
    if states == "open":
        return await tx.all(SQL["list_lasting"], Alarm, **asked)
    over = states == "over"
    if (seen := tx.seen_from) is None:
        return await tx.all(SQL["list_fired"], Alarm, over=over, **asked)
    scopes = await visible(tx, Scope(seen.client, seen.project))
    return await tx.all(SQL["list_fired_of_scopes"], Alarm, over=over, scopes=scopes, **asked)


async def load_alarm(tx: Tx, id_: AlarmId) -> Alarm:
    found = await tx.one(SQL["load_alarm"], Alarm, id=id_)
    if found is None:
        raise Unknown(f"There is no alarm {id_}.")
    return found


async def list_deliveries(tx: Tx, id_: AlarmId) -> list[Delivery]:
    """Where it was told, the last first."""
    return await tx.all(SQL["list_deliveries"], Delivery, alarm=id_)


async def acknowledge(tx: Tx, id_: AlarmId, by: str, note: str = "") -> Alarm:
    """Somebody knows of it: it is not repeated any more. When it is over, everybody is told."""
    taken = await tx.one(SQL["acknowledge"], id=id_, by=by[:200], note=note.strip()[:LONGEST_NOTE] or None)
    alarm = await load_alarm(tx, id_)
    if taken is None and alarm.over_at is None:
        raise Unknown(f"There is no alarm {id_} that you may acknowledge.")
    return alarm


async def note_delivery(tx: Tx, *, alarm: AlarmId, channel: str, event: Event, number: int) -> None:
    await tx.execute(SQL["note_delivery"], alarm=alarm, channel=channel, event=event, number=number)


async def explain_silence(tx: Tx) -> str | None:
    """Why an empty list means nothing: nobody has looked at the rules for some minutes."""
    last = await tx.one(SQL["last_round"], AlarmRound)
    if last is None or last.age is None:
        return "No worker has looked at the rules of alarms yet: run gristmill up or gristmill worker."
    if last.age < LATE:
        return None
    return f"No worker has looked at the rules of alarms for {format_span(last.age)}: see gristmill doctor."
