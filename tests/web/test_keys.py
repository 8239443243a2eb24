"""Keys: made, shown once, bound, revoked; over HTTP and in the console."""

import re

import pytest
from serving import ACME, OPERATOR, Web

from gristmill.errors import Refused, Unknown
from gristmill.scopes import GLOBAL, Scope
from gristmill.web import add_key, find_key, list_keys, revoke_key


async def test_a_key_has_256_random_bits_and_its_secret_is_shown_once(web: Web) -> None:
    made = (await web.client("operator").post("/api/keys", json={"name": "anna", "role": "manager"})).json()
    assert re.fullmatch(r"gm_[\w-]{43}", made["secret"])
    listed = await web.client("operator").get("/api/keys")
    assert made["secret"] not in listed.text
    assert (await web.make_client(made["secret"]).get("/api/openapi.json")).status_code == 200


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        ({"name": " anna"}, "needs a name"),
        ({"name": "operator"}, "already"),
        ({"name": "a", "client": ""}, "The name is empty"),
        ({"name": "a", "project": "one"}, "needs its client"),
        ({"name": "a", "client": "GLOBAL"}, "is everybody's"),
        ({"name": "a", "client": "a/b"}, "is no name"),
    ],
)
async def test_a_wish_that_makes_no_sense_is_refused_with_a_sentence(
    web: Web, wish: dict[str, str], sentence: str
) -> None:
    answer = await web.client("operator").post("/api/keys", json=wish)
    assert answer.status_code == 422
    assert sentence in answer.json()["detail"]


async def test_a_name_is_free_again_when_its_key_is_revoked(web: Web) -> None:
    async with web.db.transaction() as tx:
        first = await add_key(tx, OPERATOR, "anna", "viewer", ACME)
        await revoke_key(tx, OPERATOR, first.key.id)
        second = await add_key(tx, OPERATOR, "anna", "viewer", ACME)
        assert (await find_key(tx, "anna")).id == second.key.id
        assert (await find_key(tx, str(first.key.id))).revoked_at is not None
        assert first.key.id not in {key.id for key in await list_keys(tx)}
        assert first.key.id in {key.id for key in await list_keys(tx, all=True)}
        with pytest.raises(Refused, match="revoked before"):
            await revoke_key(tx, OPERATOR, first.key.id)
        with pytest.raises(Unknown):
            await find_key(tx, "nobody")
        with pytest.raises(Refused, match="GLOBAL is no client"):
            await add_key(tx, OPERATOR, "b", "viewer", GLOBAL)


async def test_a_key_sees_what_it_is_bound_to(web: Web) -> None:
    async with web.db.transaction() as tx:
        bound = {key.name: key.bound_to for key in await list_keys(tx)}
    assert bound["operator"] == "all clients"
    assert bound["acme viewer"] == "acme"
    assert bound["acme/one viewer"] == str(Scope("acme", "one"))


async def test_the_page_makes_a_key_and_shows_it_once(web: Web) -> None:
    page = await web.client("operator").post("/keys", data={"name": "anna", "role": "manager", "client": "acme"})
    (secret,) = re.findall(r"gm_[\w-]{43}", page.text)
    assert (page.status_code, page.headers["cache-control"]) == (200, "no-store")
    assert secret not in (await web.client("operator").get("/keys")).text
    again = await web.client("operator").post("/keys", data={"name": "anna"})
    assert again.status_code == 422
    assert "There is a key named “anna” already" in again.text


async def test_many_keys_come_in_portions(web: Web) -> None:
    async with web.db.transaction() as tx:
        for n in range(60):
            await add_key(tx, OPERATOR, f"program {n:02}", "viewer", ACME)
        names = [one.name for one in await list_keys(tx)]
    operator = web.client("operator")
    first = (await operator.get("/api/keys", params={"limit": 40})).json()
    rest = (await operator.get("/api/keys", params={"limit": 500, "cursor": first["next"]})).json()
    assert [one["name"] for one in first["items"] + rest["items"]] == names
    assert rest["next"] is None
    page = (await operator.get("/keys")).text
    (behind,) = re.findall(r'href="(/keys[^"]*cursor=[^"]*)"', page)
    rows = re.findall(r'id="key-\d+"', page + (await operator.get(behind.replace("&amp;", "&"))).text)
    assert len(set(rows)) == len(rows) == len(names)


async def test_the_page_revokes_a_key(web: Web) -> None:
    async with web.db.transaction() as tx:
        id = (await find_key(tx, "acme viewer")).id
    answer = await web.client("operator").post(f"/keys/{id}/revoke")
    assert (answer.status_code, answer.headers["location"]) == (303, "/keys")
    assert (await web.client("acme viewer").get("/api/openapi.json")).status_code == 401
    assert "revoked" not in re.findall(rf'id="key-{id}".*?</tr>', (await web.client("operator").get("/keys")).text)
    assert f'id="key-{id}"' in (await web.client("operator").get("/keys", params={"revoked": "true"})).text
