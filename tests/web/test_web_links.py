"""Links over HTTP: those that wait for a decision, one click, rules for domains, each client its own."""

from typing import Any

import pytest
from serving import ACME, GLOBEX, SAME_ORIGIN, Web

from gristmill.db import Database
from gristmill.scopes import Scope
from gristmill.sources import LinkedDocument, extract_links, list_links, note_links, set_rule

TEXT = "Dear <b>Ada</b>, read https://a.org/x and https://a.org/y, or [leave](https://a.org/unsubscribe)."


async def note(db: Database, text: str, scope: Scope, urn: str = "email::1") -> dict[str, int]:
    async with db.transaction() as tx:
        await note_links(tx, [LinkedDocument(urn, scope, extract_links(text))])
        return {one.url: one.id for one in await list_links(tx) if one.client == scope.client}


async def ask(web: Web, caller: str, path: str, **params: Any) -> Any:
    answer = await web.client(caller).get(f"/api/links{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_everybody_sees_their_own_links(web: Web) -> None:
    own = await note(web.db, TEXT, ACME)
    other = await note(web.db, "https://b.org/z", GLOBEX)
    assert {one["url"] for one in (await ask(web, "acme viewer", ""))["items"]} == set(own)
    assert len((await ask(web, "operator", ""))["items"]) == 4
    assert await ask(web, "acme viewer", "/count") == {"waiting": 2}
    assert (await ask(web, "acme viewer", "", state="refused"))["items"][0]["verdict"] == "blocked"
    assert [one["host"] for one in (await ask(web, "operator", "", domain="b.org"))["items"]] == ["b.org"]
    found = await ask(web, "acme viewer", f"/{own['https://a.org/x']}")
    assert found["found_in"][0]["urn"] == "email::1"
    (foreign,) = other.values()
    for path in (f"/api/links/{foreign}", f"/links/{foreign}"):
        assert (await web.client("acme viewer").get(path)).status_code == 404
    page = (await web.client("acme viewer").get("/links")).text
    assert "https://a.org/x" in page
    assert "b.org" not in page
    assert "Allow a.org" not in page, "a viewer decides nothing"


async def test_the_list_goes_on_where_a_cursor_says(web: Web) -> None:
    await note(web.db, " ".join(f"https://a.org/{n}" for n in range(5)), ACME)
    first = await ask(web, "acme viewer", "", limit=3)
    rest = await ask(web, "acme viewer", "", limit=3, cursor=first["next"])
    assert len({one["id"] for one in (*first["items"], *rest["items"])}) == 5
    assert rest["next"] is None


async def test_a_manager_decides_about_one_link_and_about_a_domain(web: Web) -> None:
    ids = await note(web.db, TEXT, ACME)
    client = web.client("acme manager")
    chosen = f"/api/links/{ids['https://a.org/x']}/decide"
    assert (await web.client("acme viewer").post(chosen, json={"effect": "allow"})).status_code == 403
    assert (await web.client("globex manager").post(chosen, json={"effect": "allow"})).status_code == 404
    done = await client.post(chosen, json={"effect": "allow"})
    assert (done.status_code, done.json()["state"], done.json()["decided_by"]) == (200, "queued", "acme manager")
    blocked = f"/api/links/{ids['https://a.org/unsubscribe']}/decide"
    refused = await client.post(blocked, json={"effect": "allow"})
    assert refused.status_code == 422
    assert "is never fetched" in refused.json()["detail"]
    made = await client.post("/api/links/rules", json={"effect": "allow", "pattern": "*.a.org"})
    assert (made.status_code, made.json()["domain"], made.json()["client"]) == (201, "a.org", "acme")
    assert (await ask(web, "acme viewer", "/why", url="https://docs.a.org/z"))["verdict"] == "safe"
    assert (await ask(web, "globex viewer", "/why", url="https://docs.a.org/z"))["verdict"] == "uncertain"
    assert (await ask(web, "globex viewer", "/rules"))["items"] == []
    rule = made.json()["id"]
    assert (await web.client("globex manager").delete(f"/api/links/rules/{rule}")).status_code == 404
    assert (await client.delete(f"/api/links/rules/{rule}")).json() == {"pattern": "a.org"}
    async with web.db.transaction() as tx:
        rows = await tx.all("SELECT action, subject FROM audit ORDER BY id")
    assert [(row.action, row.subject) for row in rows if "link" in row.subject] == [
        ("allow", f"link {ids['https://a.org/x']}"),
        ("allow", "links of a.org"),
        ("remove", "rule for links of a.org"),
    ]


async def test_a_rule_for_everybody_is_the_operators(web: Web) -> None:
    async with web.db.transaction() as tx:
        rule = await set_rule(tx, Scope(), "allow", "a.org", "operator")
    assert [one["id"] for one in (await ask(web, "acme viewer", "/rules"))["items"]] == [rule.id]
    assert (await web.client("acme admin").delete(f"/api/links/rules/{rule.id}")).status_code == 404
    assert (await web.client("operator manager").delete(f"/api/links/rules/{rule.id}")).status_code == 200


@pytest.mark.parametrize("pattern", ["org", "http://", "a b", "*"])
async def test_a_rule_that_names_no_domain_is_refused_in_one_sentence(web: Web, pattern: str) -> None:
    answer = await web.client("operator").post("/api/links/rules", json={"effect": "deny", "pattern": pattern})
    assert answer.status_code == 422
    assert "write for example example.org" in answer.json()["detail"]


@pytest.mark.parametrize("address", ["javascript:alert(1)", "http://user@a.org/", "nonsense nonsense"])
async def test_what_is_no_address_is_refused_in_one_sentence(web: Web, address: str) -> None:
    answer = await web.client("operator").get("/api/links/why", params={"url": address})
    assert answer.status_code == 422


async def test_one_click_decides_in_the_console(web: Web) -> None:
    ids = await note(web.db, TEXT, ACME)
    browser = web.make_browser()
    await browser.sign_in(web.keys["acme manager"])
    form = {"csrf": await browser.read_token()}
    page = (await browser.client.get("/links")).text
    assert "Dear Ada, read https://a.org/x" in page
    assert "Allow a.org" in page
    one = f"/links/{ids['https://a.org/x']}/decide"
    done = await browser.client.post(
        one, data={**form, "effect": "allow", "back": "//evil.example"}, headers=SAME_ORIGIN
    )
    assert (done.status_code, done.headers["location"]) == (303, "/links")
    rule = {**form, "effect": "deny", "pattern": "a.org", "back": "/links?state=waiting"}
    done = await browser.client.post("/links/rules", data=rule, headers=SAME_ORIGIN)
    assert (done.status_code, done.headers["location"]) == (303, "/links?state=waiting")
    rules = (await browser.client.get("/links/rules")).text
    assert "denied" in rules
    assert "acme manager" in rules
    shown = (await browser.client.get(f"/links/{ids['https://a.org/x']}")).text
    assert "acme manager allowed it." in shown
    assert "being fetched" in shown
    async with web.db.transaction() as tx:
        (id_,) = [row.id for row in await tx.all("SELECT id FROM link_rule")]
    gone = await browser.client.post(f"/links/rules/{id_}/remove", data=form, headers=SAME_ORIGIN)
    assert gone.status_code == 303
    assert "No rules yet" in (await browser.client.get("/links/rules")).text


async def test_empty_pages_say_what_will_be_here(web: Web) -> None:
    for path, words in {"/links": "Nothing waits for you", "/links?state=indexed": "No links here"}.items():
        assert words in (await web.client("acme viewer").get(path)).text
