"""Alarms over HTTP: everybody sees their own, managers acknowledge, operators try channels."""

import sys
from collections.abc import AsyncIterator

import pytest
from serving import ACME, GLOBEX, SAME_ORIGIN, Web, serve

from gristmill.alarms.evaluating import AlarmLook, settle_look
from gristmill.db import Database
from gristmill.scopes import scope_id
from gristmill.settings import AlarmSettings, CommandChannel, Settings
from gristmill.telemetry import Finding

GOOD = CommandChannel(name="good", kind="command", argv=(sys.executable, "-c", "import sys; sys.stdin.read()"))
BAD = CommandChannel(name="bad", kind="command", argv=("/not/there",))
SETTINGS = Settings(alarms=AlarmSettings(channels=(GOOD, BAD)))


@pytest.fixture
async def alarmed(db: Database) -> AsyncIterator[tuple[Web, dict[str, int]]]:
    """The web with three alarms: one of the machine, one of acme, one of globex; and their numbers."""
    async with db.transaction() as tx:
        scopes = {"machine": 1, "acme": await scope_id(tx, ACME), "globex": await scope_id(tx, GLOBEX)}
        findings = [
            Finding("disk", name, f"The <b>disk</b> of {name} is full.", "Free some space.", scope=scope)  # type: ignore[arg-type]
            for name, scope in scopes.items()
        ]
        look = AlarmLook(await tx.value("SELECT clock()"), ("disk",), tuple(findings))
        await settle_look(tx, look=look, settings=SETTINGS.alarms)
        rows = await tx.all("SELECT id, subject FROM alarm")
    async with serve(db, SETTINGS) as web:
        yield web, {row.subject: row.id for row in rows}


async def test_everybody_sees_their_own_alarms(alarmed: tuple[Web, dict[str, int]]) -> None:
    web, numbers = alarmed
    for caller, seen in {"operator viewer": set(numbers), "acme viewer": {"acme"}, "globex admin": {"globex"}}.items():
        listed = (await web.client(caller).get("/api/alarms")).json()
        assert {one["subject"] for one in listed["items"]} == seen
        assert (await web.client(caller).get("/api/alarms/count")).json()["firing"] == len(seen)
        for subject, number in numbers.items():
            status = 200 if subject in seen else 404
            assert (await web.client(caller).get(f"/api/alarms/{number}")).status_code == status
            assert (await web.client(caller).get(f"/alarms/{number}")).status_code == status
        page = (await web.client(caller).get("/alarms")).text
        assert {name for name in numbers if f"of {name} is full" in page} == seen
        assert "<b>disk" not in page


async def test_a_manager_acknowledges_an_alarm_of_its_client_alone(alarmed: tuple[Web, dict[str, int]]) -> None:
    web, numbers = alarmed
    for caller, subject, status in (
        ("acme viewer", "acme", 403),
        ("acme manager", "machine", 404),
        ("acme manager", "globex", 404),
        ("acme manager", "acme", 200),
        ("operator viewer", "machine", 403),
        ("operator manager", "machine", 200),
    ):
        path = f"/api/alarms/{numbers[subject]}/acknowledge"
        answer = await web.client(caller).post(path, json={"note": "on my way"})
        assert answer.status_code == status, (caller, subject)
    assert answer.json()["acknowledged_by"] == "operator manager"
    assert (await web.client("operator").get("/api/alarms/count")).json()["firing"] == 1
    async with web.db.transaction() as tx:
        audited = await tx.value("SELECT count(*) FROM audit WHERE action = 'acknowledge'")
    assert audited == 2


async def test_the_list_goes_on_where_a_cursor_says(alarmed: tuple[Web, dict[str, int]]) -> None:
    web, _ = alarmed
    client = web.client("operator")
    seen: list[int] = []
    cursor = None
    while True:
        answer = (await client.get("/api/alarms", params={"limit": 1, **({"cursor": cursor} if cursor else {})})).json()
        seen += [one["id"] for one in answer["items"]]
        cursor = answer["next"]
        if cursor is None:
            break
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == 3
    assert (await client.get("/api/alarms", params={"states": "over"})).json() == {"items": [], "next": None}
    assert (await client.get("/api/alarms", params={"cursor": "x"})).status_code == 422


async def test_an_operator_tries_a_channel_and_is_told_what_is_wrong(alarmed: tuple[Web, dict[str, int]]) -> None:
    web, _ = alarmed
    client = web.client("operator")
    assert [one["name"] for one in (await client.get("/api/alarms/channels")).json()] == ["good", "bad"]
    good = await client.post("/api/alarms/channels/good/test")
    assert (good.status_code, good.json()) == (200, {"said": "The test reached good."})
    bad = await client.post("/api/alarms/channels/bad/test")
    assert bad.status_code == 422
    assert "The command /not/there cannot be started" in bad.json()["detail"]
    assert (await client.post("/api/alarms/channels/fax/test")).status_code == 404
    for caller in ("acme admin", "operator manager", "operator viewer"):
        assert (await web.client(caller).post("/api/alarms/channels/good/test")).status_code == 403
        assert "Send a test" not in (await web.client(caller).get("/alarms")).text


async def test_the_bell_counts_and_a_click_acknowledges(alarmed: tuple[Web, dict[str, int]]) -> None:
    web, numbers = alarmed
    browser = web.make_browser()
    await browser.sign_in(web.keys["acme manager"])
    bell = (await browser.client.get("/alarms/bell")).text
    assert '<span class="count is-failed">1</span>' in bell
    page = (await browser.client.get("/alarms")).text
    assert f'action="/alarms/{numbers["acme"]}/acknowledge"' in page
    form = {"csrf": await browser.read_token(), "note": "mine"}
    done = await browser.client.post(f"/alarms/{numbers['acme']}/acknowledge", data=form, headers=SAME_ORIGIN)
    assert (done.status_code, done.headers["location"]) == (303, "/alarms")
    assert "count" not in (await browser.client.get("/alarms/bell")).text
    assert "acme manager knows of it: mine" in (await browser.client.get("/alarms")).text


async def test_an_empty_page_says_that_all_is_well_or_that_nobody_looked(web: Web) -> None:
    page = (await web.client("operator").get("/alarms")).text
    assert "All is well" in page
    assert "No worker has looked at the rules of alarms yet" in page
    assert "[[alarms.channels]]" in page
    assert "No alarms yet" in (await web.client("acme viewer").get("/alarms?states=over")).text
