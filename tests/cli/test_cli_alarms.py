"""`gristmill alarms`: the list, the acknowledgement and the test of a channel, as people and programs read them."""

import asyncio
import json

import pytest

from gristmill.alarms.evaluating import AlarmLook, settle_look
from gristmill.db import Database
from gristmill.settings import AlarmSettings
from gristmill.telemetry import Finding


@pytest.fixture
def alarm(url: str) -> int:
    async def fire() -> int:
        async with Database(url) as db, db.transaction() as tx:
            look = AlarmLook(
                await tx.value("SELECT clock()"), ("disk",), (Finding("disk", "disk", "The disk is full."),)
            )
            await settle_look(tx, look=look, settings=AlarmSettings())
            return await tx.value("SELECT id FROM alarm")

    return asyncio.run(fire())


def test_alarms_are_listed_and_acknowledged(cli, alarm):
    assert "The disk is full." in cli("alarms", "list").out
    said = cli("alarms", "ack", str(alarm), "--note", "on my way")
    assert f"Alarm {alarm} is acknowledged by" in said.out
    (listed,) = json.loads(cli("alarms", "list", "--json").out)
    assert (listed["state"], listed["note"]) == ("acknowledged", "on my way")


def test_an_alarm_that_does_not_exist_is_one_sentence(cli, url):
    said = cli("alarms", "ack", "77")
    assert (said.code, said.err.strip()) == (1, "There is no alarm 77.")


def test_where_nobody_looks_an_empty_list_is_no_comfort(cli, url):
    said = cli("alarms", "list")
    assert "All is well: no alarm lasts." in said.out
    assert "No worker has looked at the rules of alarms yet" in said.err


def test_a_channel_is_tried(cli, url, monkeypatch):
    channels = [{"name": "ops", "kind": "command", "argv": ["true"]}]
    monkeypatch.setenv("GRISTMILL_ALARMS_CHANNELS", json.dumps(channels))
    assert "ops" in cli("alarms", "channels").out
    assert cli("alarms", "test", "ops").out.strip() == "The test reached ops."
    said = cli("alarms", "test", "fax")
    assert (said.code, said.err.strip()) == (1, "There is no channel “fax” (ops).")
