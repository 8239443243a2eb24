"""Sources over HTTP: everybody sees their own, managers poll and pause them, nobody sees another's bytes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from serving import ACME, GLOBEX, SAME_ORIGIN, Web, serve

from gristmill.db import Database
from gristmill.scopes import GLOBAL, Scope
from gristmill.sources import Wanted, add_source

ITEM = """
INSERT INTO source_item (source, scope, external, state, error, size, hash)
SELECT id, scope, 'bad <b>item</b>', 'SET_ASIDE', 'It is no mail.', 9, 'x' FROM source WHERE id = %(id)s RETURNING id
"""
RAW = (
    "INSERT INTO source_raw (item, n, scope, bytes) SELECT id, 0, scope, '<script>1' FROM source_item WHERE id = %(id)s"
)


@pytest.fixture
async def sown(db: Database, tmp_path: Path) -> AsyncIterator[tuple[Web, dict[str, tuple[int, int]]]]:
    """The web with a source of everybody, one of acme and one of globex, each with an item that was set aside."""
    numbers: dict[str, tuple[int, int]] = {}
    for name, scope in (("common", GLOBAL), ("letters", ACME), ("mails", GLOBEX)):
        numbers[name] = await sow(db, name, scope, tmp_path)
    async with serve(db) as web:
        yield web, numbers


async def sow(db: Database, name: str, scope: Scope, folder: Path) -> tuple[int, int]:
    async with db.transaction() as tx:
        source = await add_source(tx, Wanted(name, "eml", {"path": f"{folder}/{name}"}, scope))
        item: int = await tx.value(ITEM, id=source.id)
        await tx.execute(RAW, id=item)
    return source.id, item


async def test_everybody_sees_their_own_sources(sown: tuple[Web, dict[str, tuple[int, int]]]) -> None:
    web, numbers = sown
    seen = {
        "operator viewer": {"common", "letters", "mails"},
        "acme viewer": {"common", "letters"},
        "globex admin": {"common", "mails"},
    }
    for caller, names in seen.items():
        listed = (await web.client(caller).get("/api/sources")).json()
        assert {one["name"] for one in listed} == names
        page = (await web.client(caller).get("/sources")).text
        assert {name for name in numbers if f">{name}</a>" in page} == names
        for name, (source, item) in numbers.items():
            status = 200 if name in names else 404
            for path in (f"/api/sources/{source}", f"/sources/{source}", f"/sources/{source}/items/{item}"):
                assert (await web.client(caller).get(path)).status_code == status, (caller, path)
            bytes_ = await web.client(caller).get(f"/api/sources/{source}/items/{item}/bytes")
            assert bytes_.status_code == status


async def test_a_program_is_told_of_no_command_when_there_is_no_such_source(
    sown: tuple[Web, dict[str, tuple[int, int]]],
) -> None:
    web, numbers = sown
    foreign, _ = numbers["mails"]
    answer = await web.client("acme viewer").get(f"/api/sources/{foreign}")
    assert (answer.status_code, answer.json()["detail"]) == (404, f"There is no source {foreign}.")


async def test_a_place_where_most_is_gone_has_the_button_to_agree(
    sown: tuple[Web, dict[str, tuple[int, int]]], db: Database
) -> None:
    web, numbers = sown
    source = numbers["letters"][0]
    button = "They are gone: remove them"
    assert button not in (await web.client("acme manager").get(f"/sources/{source}")).text
    async with db.transaction() as tx:
        await tx.execute(
            "UPDATE source SET awaits_agreement = true, listing_error = '9 of 9 are gone', succeeded_at = clock()"
        )
    page = (await web.client("acme manager").get(f"/sources/{source}")).text
    assert button in page
    assert "9 of 9 are gone" in page
    assert "<dt>Lag</dt>" in page
    assert button not in (await web.client("acme viewer").get(f"/sources/{source}")).text
    shown = (await web.client("acme viewer").get(f"/api/sources/{source}")).json()
    assert (shown["awaits_agreement"], shown["listing_trouble"]) == (True, "9 of 9 are gone")
    agreed = await web.client("acme manager").post(f"/api/sources/{source}/sync", json={"agreed": True})
    assert agreed.status_code == 200
    async with db.transaction() as tx:
        assert await tx.value("SELECT count(*) FROM tasks WHERE kind = 'sources.list'") == 1
        consent = await tx.all("SELECT name FROM source WHERE listing_agreed_at IS NOT NULL")
    assert [row.name for row in consent] == ["letters"]


async def test_the_options_of_everybodys_source_are_the_operators_alone(
    sown: tuple[Web, dict[str, tuple[int, int]]],
) -> None:
    web, numbers = sown
    for caller, shown in (("operator viewer", True), ("acme admin", False)):
        found = (await web.client(caller).get(f"/api/sources/{numbers['common'][0]}")).json()
        assert bool(found["options"]) == shown
        page = (await web.client(caller).get(f"/sources/{numbers['common'][0]}")).text
        assert ("/common</code>" in page) == shown


async def test_an_item_shows_its_error_and_its_bytes_and_runs_none_of_them(
    sown: tuple[Web, dict[str, tuple[int, int]]],
) -> None:
    web, numbers = sown
    source, item = numbers["letters"]
    page = (await web.client("acme viewer").get(f"/sources/{source}/items/{item}")).text
    assert "It is no mail." in page
    assert "&lt;script&gt;1" in page
    assert "<script>1" not in page
    assert "<b>item" not in page
    raw = await web.client("acme viewer").get(f"/api/sources/{source}/items/{item}/bytes")
    assert raw.content == b"<script>1"
    assert raw.headers["content-type"] == "application/octet-stream"
    assert raw.headers["content-disposition"].startswith("attachment")
    listed = (await web.client("acme viewer").get(f"/api/sources/{source}/items?state=SET_ASIDE")).json()
    assert [one["id"] for one in listed["items"]] == [item]


async def test_a_manager_polls_pauses_and_resumes_the_sources_of_its_client_alone(
    sown: tuple[Web, dict[str, tuple[int, int]]],
) -> None:
    web, numbers = sown
    for caller, name, status in (
        ("acme viewer", "letters", 403),
        ("acme manager", "mails", 404),
        ("acme manager", "letters", 200),
        ("operator manager", "common", 200),
    ):
        base = f"/api/sources/{numbers[name][0]}"
        answer = await web.client(caller).post(f"{base}/sync", json={})
        assert answer.status_code == status, (caller, name, answer.text)
        assert (await web.client(caller).post(f"{base}/pause")).status_code == status
        if status == 200:
            assert answer.json()["tried_again"] == 1
            assert (await web.client(caller).get(base)).json()["status"] == "paused"
            refused = await web.client(caller).post(f"{base}/sync", json={})
            assert refused.status_code == 422
            assert (await web.client(caller).post(f"{base}/resume")).json()["status"] == "waiting"
    async with web.db.transaction() as tx:
        audited = await tx.value("SELECT count(*)::int FROM audit WHERE action IN ('sync', 'pause', 'resume')")
    assert audited == 6


async def test_a_client_cannot_change_a_source_of_everybody(sown: tuple[Web, dict[str, tuple[int, int]]]) -> None:
    web, numbers = sown
    base = f"/api/sources/{numbers['common'][0]}"
    for path in ("sync", "pause"):
        answer = await web.client("acme manager").post(f"{base}/{path}", json={})
        assert answer.status_code in (403, 404), path
    assert (await web.client("operator").get(base)).json()["status"] != "paused"


async def test_a_person_polls_a_source_with_one_click(sown: tuple[Web, dict[str, tuple[int, int]]]) -> None:
    web, numbers = sown
    path = f"/sources/{numbers['letters'][0]}"
    browser = web.make_browser()
    await browser.sign_in(web.keys["acme manager"])
    assert f'action="{path}/sync"' in (await browser.client.get("/sources")).text
    form = {"csrf": await browser.read_token(), "full": "true"}
    answer = await browser.client.post(f"{path}/sync", data=form, headers=SAME_ORIGIN)
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    async with web.db.transaction() as tx:
        assert await tx.value("SELECT count(*)::int FROM task WHERE kind = 'sources.list' AND outcome IS NULL") == 1
