"""Looks at all rules of all rooms once a minute, and settles what they found."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from gristmill.alarms.deciding import AlarmStep, Rhythm, decide
from gristmill.alarms.letters import EvaluateAlarms, TellAlarm
from gristmill.alarms.model import AlarmId, OpenAlarm
from gristmill.alarms.store import SQL
from gristmill.db import Database, Tx
from gristmill.errors import Transient
from gristmill.ids import ScopeId
from gristmill.queue import Done, send_many
from gristmill.rooms import Room, Watch
from gristmill.settings import AlarmSettings, Channel, Settings
from gristmill.telemetry import Finding, log

BROKEN_RULE = "broken-rule"
Key = tuple[str, str, ScopeId]  # rule, subject, scope
LONGEST = 1_000  # characters of a sentence
LEVELS = ("warning", "critical")


@dataclass(frozen=True)
class AlarmLook:
    """What one look found: `rules` are those that could be asked; alarms of others stay as they are."""

    at: datetime
    rules: tuple[str, ...]
    findings: tuple[Finding, ...]


async def evaluate_alarms(_: EvaluateAlarms, *, db: Database, settings: Settings, rooms: Sequence[Room]) -> Done:
    look = await look_at_rules(db, settings, [watch for room in rooms for watch in room.alarms])
    return Done(write=partial(settle_look, look=look, settings=settings.alarms))


async def look_at_rules(db: Database, settings: Settings, watches: Sequence[Watch]) -> AlarmLook:
    """Ask every watch by itself: one that fails is an alarm, and the others are asked all the same."""
    async with db.reading() as tx:
        now = await tx.only_value(SQL["now"], datetime)
    rules, findings = [BROKEN_RULE], list[Finding]()
    for watch in watches:
        found = await _ask(db, settings, watch)
        if isinstance(found, Finding):
            findings.append(found)
        else:
            rules.extend(watch.rules)
            findings.extend(found)
    return AlarmLook(now, tuple(rules), tuple(findings))


async def _ask(db: Database, settings: Settings, watch: Watch) -> Sequence[Finding] | Finding:
    try:
        async with db.reading() as tx:
            return await watch.find(tx, settings)
    except Transient:
        raise  # the database is away: the whole look is done again
    except Exception as error:  # noqa: BLE001 a bug in one rule must not silence the others
        log.exception("alarm.rule_failed", rules=watch.rules)
        sentence = f"The rules {', '.join(watch.rules)} cannot be looked at: {type(error).__name__}: {error}"
        return Finding(BROKEN_RULE, watch.rules[0], sentence, "Nobody would be told of what they find.", "critical")


# --- settling


async def settle_look(tx: Tx, *, look: AlarmLook, settings: AlarmSettings) -> None:
    """Turn findings into alarms and alarms into letters, in the transaction that completes the look."""
    if await tx.one(SQL["lock_round"], at=look.at) is None:
        return
    known: dict[Key, OpenAlarm] = {
        (one.rule, one.subject, one.scope): one
        for one in await tx.all(SQL["load_open"], OpenAlarm, rules=list(look.rules))
    }
    found = {(one.rule, one.subject, one.scope): _shorten(one) for one in look.findings}
    for key in [*known, *(key for key in found if key not in known)]:
        await _settle(tx, AlarmCase(known.get(key), found.get(key)), look.at, settings)
    await tx.execute(SQL["clean"], before=look.at - settings.keep_for)


@dataclass(frozen=True)
class AlarmCase:
    """An alarm as the last look left it, and what this look found; one of the two is there."""

    known: OpenAlarm | None
    finding: Finding | None

    @property
    def number(self) -> int:
        """How often it will have been told, with the next time."""
        return (self.known.told if self.known else 0) + 1

    def is_for(self, channel: Channel) -> bool:
        one = self.finding or self.known
        return one is not None and not one.quiet and LEVELS.index(one.level) >= LEVELS.index(channel.level)


async def _settle(tx: Tx, case: AlarmCase, now: datetime, settings: AlarmSettings) -> None:
    step = decide(case.known, case.finding, now, Rhythm(settings.repeat, settings.calm))
    id_ = await _write(tx, case, step, now)
    if step.event is None:
        return
    log.info(f"alarm.{step.event}", alarm=id_)
    await tx.execute(SQL["note_told"], id=id_, now=now)
    wanted = [one.name for one in settings.channels if case.is_for(one)]
    await send_many(tx, [TellAlarm(id_, name, step.event, case.number) for name in wanted])


async def _write(tx: Tx, case: AlarmCase, step: AlarmStep, now: datetime) -> AlarmId:
    if case.known is None:
        assert case.finding is not None
        return AlarmId(
            await tx.only_value(SQL["begin"], int, **_columns(case.finding, step, now), **_names(case.finding))
        )
    if case.finding is not None:
        await tx.execute(SQL["note_finding"], id=case.known.id, holds=step.holds, **_columns(case.finding, step, now))
    if step.forget:
        await tx.execute(SQL["forget"], id=case.known.id)
    elif step.event == "over":
        await tx.execute(SQL["end_alarm"], id=case.known.id, now=now)
    return case.known.id


def _columns(finding: Finding, step: AlarmStep, now: datetime) -> dict[str, Any]:
    said = {"level": finding.level, "sentence": finding.sentence, "advice": finding.advice, "mark": finding.mark}
    return {**said, "since": step.since, "now": now, "fires": step.event == "fired"}


def _names(finding: Finding) -> dict[str, Any]:
    return {"scope": finding.scope, "rule": finding.rule, "subject": finding.subject, "quiet": finding.quiet}


def _shorten(finding: Finding) -> Finding:
    """Names of files and errors stand in sentences: PostgreSQL takes no NUL, and nobody reads a page of it."""
    clean = {
        name: getattr(finding, name).replace("\0", "")[:LONGEST] for name in ("subject", "sentence", "advice", "mark")
    }
    return replace(finding, **clean)
