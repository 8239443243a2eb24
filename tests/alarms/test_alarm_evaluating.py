"""Rules of all rooms are looked at, and what they find becomes alarms and letters, once."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from gristmill.alarms import acknowledge, count_alarms, explain_silence, list_alarms, load_alarm
from gristmill.alarms.evaluating import BROKEN_RULE, AlarmLook, evaluate_alarms, look_at_rules, settle_look
from gristmill.alarms.letters import EvaluateAlarms
from gristmill.alarms.store import SQL
from gristmill.app import ROOMS
from gristmill.db import Database, Tx
from gristmill.errors import Unknown, Unreachable
from gristmill.rooms import Watch
from gristmill.scopes import Scope, scope_id
from gristmill.settings import AlarmSettings, CommandChannel, Settings
from gristmill.telemetry import Finding
from plans import count_rows

MINUTE = timedelta(minutes=1)
FULL = Finding("disk", "disk", "The disk is full.", "Free some space.")
STALLED = Finding("stage-stalled", "ocr", "It is stalled.", lasting=5 * MINUTE, mark="40")
OPS = CommandChannel(name="ops", kind="command", argv=("true",))
BOSS = CommandChannel(name="boss", kind="command", argv=("true",), level="critical")
SETTINGS = AlarmSettings(channels=(OPS, BOSS))


class Rounds:
    """Looks that follow each other a minute apart."""

    def __init__(self, db: Database, start: datetime) -> None:
        self.db = db
        self.at = start
        self.settings = SETTINGS

    async def look(self, *findings: Finding, after: timedelta = MINUTE, rules: Sequence[str] = ()) -> None:
        self.at += after
        known = tuple({one.rule for one in findings} | set(rules) | {"disk", "stage-stalled", BROKEN_RULE})
        async with self.db.transaction() as tx:
            await settle_look(tx, look=AlarmLook(self.at, known, findings), settings=self.settings)


@pytest.fixture
async def rounds(db: Database) -> Rounds:
    async with db.transaction() as tx:
        return Rounds(db, await tx.value("SELECT clock()"))


async def letters(db: Database) -> list[tuple[str, str, int]]:
    async with db.transaction() as tx:
        rows = await tx.all("SELECT payload FROM task WHERE kind = 'alarms.tell' ORDER BY id")
    return [(row.payload["channel"], row.payload["event"], row.payload["number"]) for row in rows]


async def test_an_alarm_fires_once_repeats_and_says_when_it_is_over(db: Database, rounds: Rounds) -> None:
    for _ in range(3):
        await rounds.look(FULL)
    assert await letters(db) == [("ops", "fired", 1)]
    await rounds.look(FULL, after=timedelta(hours=4))
    for _ in range(6):
        await rounds.look()
    assert await letters(db) == [("ops", "fired", 1), ("ops", "repeated", 2), ("ops", "over", 3)]
    async with db.transaction() as tx:
        (alarm,) = await list_alarms(tx, "over")
        assert await list_alarms(tx, "open") == []
    assert alarm.state == "over"
    await rounds.look(FULL)
    assert (await letters(db))[-1] == ("ops", "fired", 1), "a new time is a new alarm"


async def test_a_channel_hears_of_its_level_alone(db: Database, rounds: Rounds) -> None:
    await rounds.look(replace(FULL, level="critical"))
    assert await letters(db) == [("ops", "fired", 1), ("boss", "fired", 1)]


async def test_what_does_not_last_is_told_to_nobody(db: Database, rounds: Rounds) -> None:
    for mark in range(20):
        await rounds.look(replace(STALLED, mark=str(mark)))
    async with db.transaction() as tx:
        assert await list_alarms(tx, "all") == []
        assert await count_alarms(tx) == 0
    for _ in range(5):
        await rounds.look(replace(STALLED, mark="19"))
    assert await letters(db) == [("ops", "fired", 1)]


async def test_what_comes_and_goes_is_one_alarm(db: Database, rounds: Rounds) -> None:
    for _ in range(10):
        await rounds.look(FULL)
        await rounds.look()
    assert await letters(db) == [("ops", "fired", 1)]


async def test_an_acknowledged_alarm_is_not_repeated_but_its_end_is_told(db: Database, rounds: Rounds) -> None:
    await rounds.look(FULL)
    async with db.transaction() as tx:
        (alarm,) = await list_alarms(tx)
        assert await count_alarms(tx) == 1
        known = await acknowledge(tx, alarm.id, "ada", "on my way")
        assert await count_alarms(tx) == 0
    assert (known.state, known.acknowledged_by, known.note) == ("acknowledged", "ada", "on my way")
    await rounds.look(FULL, after=timedelta(days=1))
    await rounds.look(after=timedelta(minutes=6))
    assert await letters(db) == [("ops", "fired", 1), ("ops", "over", 2)]


async def test_an_alarm_that_does_not_exist_cannot_be_acknowledged(db: Database) -> None:
    async with db.transaction() as tx:
        with pytest.raises(Unknown, match=r"There is no alarm 77\."):
            await acknowledge(tx, 77, "ada")  # type: ignore[arg-type]


async def test_a_quiet_finding_is_shown_and_sent_to_nobody(db: Database, rounds: Rounds) -> None:
    await rounds.look(replace(FULL, quiet=True))
    async with db.transaction() as tx:
        assert len(await list_alarms(tx)) == 1
    assert await letters(db) == []


async def test_a_rule_that_fails_is_an_alarm_and_ends_no_other(db: Database, rounds: Rounds) -> None:
    async def fail(tx: Tx, settings: Settings) -> list[Finding]:
        return [1 / 0]  # type: ignore[list-item]

    async def find(tx: Tx, settings: Settings) -> list[Finding]:
        return [FULL]

    await rounds.look(STALLED, after=MINUTE)
    await rounds.look(STALLED, after=10 * MINUTE)
    look = await look_at_rules(db, Settings(), [Watch(("stage-stalled",), fail), Watch(("disk",), find)])
    assert look.rules == (BROKEN_RULE, "disk")
    async with db.transaction() as tx:
        await settle_look(tx, look=replace(look, at=rounds.at + timedelta(hours=1)), settings=SETTINGS)
        found = {one.rule: one for one in await list_alarms(tx)}
    assert set(found) == {"stage-stalled", BROKEN_RULE, "disk"}
    assert "ZeroDivisionError" in found[BROKEN_RULE].sentence


async def test_a_database_that_is_away_is_no_broken_rule(db: Database) -> None:
    async def fail(tx: Tx, settings: Settings) -> list[Finding]:
        raise Unreachable("away")

    with pytest.raises(Unreachable):
        await look_at_rules(db, Settings(), [Watch(("disk",), fail)])


async def test_an_older_look_that_is_settled_late_changes_nothing(db: Database, rounds: Rounds) -> None:
    await rounds.look(FULL)
    await rounds.look(after=-3 * MINUTE)
    await rounds.look(replace(FULL, subject="other"), after=-3 * MINUTE)
    async with db.transaction() as tx:
        assert [one.subject for one in await list_alarms(tx)] == ["disk"]


async def test_two_looks_at_once_fire_one_alarm(db: Database, rounds: Rounds) -> None:
    async def settle(at: datetime) -> None:
        async with db.transaction() as tx:
            await settle_look(tx, look=AlarmLook(at, ("disk",), (FULL,)), settings=SETTINGS)

    await asyncio.gather(*(settle(rounds.at + n * MINUTE) for n in range(8)))
    assert await letters(db) == [("ops", "fired", 1)]


async def test_a_sentence_full_of_rubbish_is_still_an_alarm(db: Database, rounds: Rounds) -> None:
    await rounds.look(replace(FULL, sentence="a\0b" * 5_000, subject="\0"))
    async with db.transaction() as tx:
        (alarm,) = await list_alarms(tx)
    assert len(alarm.sentence) == 1_000


async def test_old_alarms_are_forgotten(db: Database, rounds: Rounds) -> None:
    await rounds.look(FULL)
    await rounds.look(after=6 * MINUTE)
    await rounds.look(after=timedelta(days=31))
    async with db.transaction() as tx:
        assert await list_alarms(tx, "all") == []


async def test_the_rules_of_all_rooms_are_looked_at(db: Database) -> None:
    done = await evaluate_alarms(EvaluateAlarms(), db=db, settings=Settings(), rooms=ROOMS)
    assert done.write is not None
    async with db.transaction() as tx:
        assert "yet" in (await explain_silence(tx) or "")
        await done.write(tx)
        assert await explain_silence(tx) is None
    names = [rule for room in ROOMS for watch in room.alarms for rule in watch.rules]
    assert len(names) == len(set(names))
    assert {"dead-letters", "queue-depth", "breaker-open", "stage-stalled", "stage-starved", "worker-idle"} <= set(
        names
    )
    assert {"disk", "clock", "unread-scans", "empty-extractions"} <= set(names)


async def test_a_client_sees_its_own_alarms_and_none_of_the_machine(db: Database, rounds: Rounds) -> None:
    async with db.transaction() as tx:
        acme, beta = await scope_id(tx, Scope("acme")), await scope_id(tx, Scope("beta"))
    scans = Finding("disk", "ocr", "OCR read nothing.")
    await rounds.look(FULL, replace(scans, scope=acme), replace(scans, scope=beta))
    async with db.transaction() as tx:
        everything = await list_alarms(tx)
        assert await count_alarms(tx) == 3
    async with db.transaction(seen_from=Scope("acme")) as tx:
        (own,) = await list_alarms(tx)
        assert own.client == "acme"
        assert await count_alarms(tx) == 1
        for one in everything:
            if one.id != own.id:
                with pytest.raises(Unknown):
                    await load_alarm(tx, one.id)
                with pytest.raises(Unknown):
                    await acknowledge(tx, one.id, "mallory")
        assert (await acknowledge(tx, own.id, "ada")).state == "acknowledged"
    async with db.transaction() as tx:
        assert {one.acknowledged_by for one in await list_alarms(tx)} == {None, "ada"}


async def test_scans_without_text_are_found(db: Database) -> None:
    look: Any = next(watch for room in ROOMS for watch in room.alarms if "unread-scans" in watch.rules)
    async with db.transaction() as tx:
        acme = await scope_id(tx, Scope("acme"))
        for id_, texts in {1: ["", ""], 2: ["", "words"], 3: [""], 4: []}.items():
            await insert_scan(tx, acme, id_, texts)
        (found,) = await look.find(tx, Settings())
    assert found.scope == acme
    assert "OCR read no text in 2 scanned documents of the last day: scan-3.pdf (3), scan-1.pdf (1)." in found.sentence


async def insert_scan(tx: Tx, scope: int, id_: int, texts: Sequence[str]) -> None:
    await tx.execute("INSERT INTO blob (hash, size) VALUES (%(hash)s, 3) ON CONFLICT DO NOTHING", hash=bytes(32))
    await tx.execute(
        "INSERT INTO document (id, scope, urn, version, hash, name, completed_at, task, opening)"
        " OVERRIDING SYSTEM VALUE VALUES (%(id)s, %(scope)s, %(urn)s, 1, %(hash)s, %(name)s, clock(), 0, 0)",
        id=id_,
        scope=scope,
        urn=f"urn:{id_}",
        hash=bytes(32),
        name=f"scan-{id_}.pdf",
    )
    for number, text in enumerate(texts, 1):
        await tx.execute(
            "INSERT INTO page (document, number, scope, method, text, key)"
            " VALUES (%(id)s, %(n)s, %(scope)s, 'ocr', %(text)s, '')",
            id=id_,
            n=number,
            scope=scope,
            text=text,
        )


MANY_OVER = """
INSERT INTO alarm (scope, rule, subject, level, sentence, since, seen_at, fired_at, over_at)
SELECT CASE WHEN n %% 1000 = 0 THEN %(scope)s ELSE 1 END, 'dead-letters', 'queue ' || n, 'warning', 'Some died.',
       clock(), clock(), clock(), clock()
  FROM generate_series(1, 30000) n
"""


async def test_what_a_list_of_alarms_costs_does_not_grow_with_those_that_are_over(db: Database) -> None:
    async with db.transaction() as tx:
        own = await scope_id(tx, Scope("acme"))
        await tx.execute(MANY_OVER, scope=own)
        await tx.execute("ANALYZE alarm")
        asked = {"before": 2**62, "limit": 20, "over": True, "scopes": [own]}
        for name in ("list_lasting", "list_fired", "list_fired_of_scopes"):
            plan = await tx.value("EXPLAIN (ANALYZE, FORMAT JSON) " + SQL[name], **asked)
            assert count_rows(plan[0]["Plan"]) < 300, name
    async with db.reading(seen_from=Scope("acme")) as tx:
        assert len(await list_alarms(tx, "over", limit=100)) == 30
        assert await list_alarms(tx, "open") == []
