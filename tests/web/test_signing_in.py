"""Signing in: with a key or a link, once, a limited number of times, and out with the key."""

import asyncio
import re

import httpx
import pytest
from serving import ADDRESS, OPERATOR, SAME_ORIGIN, Web, serve

from gristmill.db import Database
from gristmill.settings import Settings
from gristmill.web import find_key, make_link, revoke_key

SETTINGS = Settings().web


async def make_token(web: Web) -> str:
    async with web.db.transaction() as tx:
        return await make_link(tx, SETTINGS)


async def revoke(web: Web, name: str) -> None:
    async with web.db.transaction() as tx:
        await revoke_key(tx, OPERATOR, (await find_key(tx, name)).id)


async def age(web: Web, table: str, column: str, span: str) -> None:
    """As if this much time had gone by."""
    async with web.db.transaction() as tx:
        await tx.execute(f"UPDATE {table} SET {column} = {column} - %(span)s::interval", span=span)  # pyright: ignore[reportArgumentType]


async def is_in(client: httpx.AsyncClient) -> bool:
    """Whether pages are shown to this browser."""
    answer = await client.get("/audit")
    assert answer.status_code in (200, 303, 403)
    return answer.status_code != 303


# --- with a key


async def test_a_key_opens_a_session_and_signing_out_ends_it(web: Web) -> None:
    browser = web.make_browser()
    answer = await browser.sign_in(web.keys["acme viewer"])
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert await is_in(browser.client)
    secret = browser.client.cookies["gristmill_6455"]
    left = await browser.client.post("/sign-out", data={"csrf": await browser.read_token()}, headers=SAME_ORIGIN)
    assert (left.status_code, left.headers["location"]) == (303, "/sign-in")
    assert not await is_in(browser.client)
    thief = web.make_client()
    thief.cookies.set("gristmill_6455", secret)
    assert not await is_in(thief)


async def test_the_cookie_is_for_this_server_alone_and_for_no_script(web: Web) -> None:
    browser = web.make_browser()
    (cookie,) = (await browser.sign_in(web.keys["operator"])).headers.get_list("set-cookie")
    name, *rest = [part.strip() for part in cookie.split(";")]
    assert name.startswith("gristmill_6455=")
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(rest)
    assert "Secure" not in rest
    wish = {"data": {"key": web.keys["operator"]}, "headers": {"Origin": "https://127.0.0.1"}}
    (cookie,) = (await browser.client.post("https://127.0.0.1/sign-in", **wish)).headers.get_list("set-cookie")
    assert cookie.startswith("__Host-gristmill=")
    assert "Secure" in cookie


async def test_what_is_kept_of_keys_sessions_and_links_opens_nothing(web: Web) -> None:
    browser = web.make_browser()
    await browser.sign_in(web.keys["operator"])
    token = await make_token(web)
    async with web.db.transaction() as tx:
        rows = [
            str(row)
            for table in ("access_key", "web_session", "sign_in_link")
            for row in await tx.all(f"SELECT t::text FROM {table} t")  # pyright: ignore[reportArgumentType]
        ]
    for secret in (web.keys["operator"], browser.client.cookies["gristmill_6455"], token):
        assert not any(secret in row or secret.encode().hex() in row for row in rows)


async def test_a_session_ends_by_itself(web: Web) -> None:
    browser = web.make_browser()
    await browser.sign_in(web.keys["acme viewer"])
    await age(web, "web_session", "expires_at", "8 days")
    assert not await is_in(browser.client)


async def test_a_key_that_is_revoked_ends_its_sessions_and_opens_nothing_at_once(web: Web) -> None:
    browser, program = web.make_browser(), web.client("acme viewer")
    await browser.sign_in(web.keys["acme viewer"])
    assert await is_in(browser.client)
    assert (await program.get("/api/openapi.json")).status_code == 200
    await revoke(web, "acme viewer")
    assert not await is_in(browser.client)
    assert (await program.get("/api/openapi.json")).status_code == 401
    assert (await browser.sign_in(web.keys["acme viewer"])).status_code == 401


async def test_a_part_of_a_page_that_is_fetched_after_the_session_ended_leads_the_page_to_the_sign_in(web: Web) -> None:
    answer = await web.client(None).get("/audit", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["hx-redirect"]) == (401, "/sign-in")


async def test_signing_in_from_a_foreign_page_is_refused(web: Web) -> None:
    answer = await web.client(None).post(
        "/sign-in", data={"key": web.keys["operator"]}, headers={"Origin": "https://evil.example"}
    )
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


# --- with a link


async def test_a_link_signs_in_and_its_token_is_in_no_address_that_follows(web: Web) -> None:
    token = await make_token(web)
    browser = web.make_browser()
    answer = await browser.client.get("/", params={"token": token})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert token not in str(answer.headers) + answer.text
    assert await is_in(browser.client)
    assert (await browser.client.get("/keys")).status_code == 200  # the operator's page


async def test_a_link_signs_in_once_also_where_many_use_it_at_the_same_time(web: Web) -> None:
    token = await make_token(web)
    browsers = [web.make_browser(f"10.0.0.{n}") for n in range(8)]
    answers = await asyncio.gather(*(one.client.get("/", params={"token": token}) for one in browsers))
    assert sorted(answer.status_code for answer in answers) == [303] + [401] * 7
    late = await web.make_browser("10.0.0.9").client.get("/", params={"token": token})
    assert late.status_code == 401
    assert "gristmill key link" in late.text
    assert token not in late.text


async def test_a_link_that_is_too_old_signs_nobody_in(web: Web) -> None:
    token = await make_token(web)
    await age(web, "sign_in_link", "expires_at", "16 minutes")
    assert (await web.client(None).get("/", params={"token": token})).status_code == 401


async def test_a_person_who_follows_a_link_on_a_foreign_page_is_let_in_by_the_cookie(web: Web) -> None:
    """A strict cookie does not come with that request: the page that is shown asks again by itself, with the cookie."""
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    page = await web.client(None).get("/audit", headers=visit)
    assert page.status_code == 200
    assert '<meta http-equiv="refresh" content="0">' in page.text
    again = await web.client(None).get(
        "/audit", headers={"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "navigate"}
    )
    assert (again.status_code, again.headers["location"]) == (303, "/sign-in")


# --- guessing


async def guess(web: Web, address: str, key: str = "gm_wrong") -> int:
    return (await web.make_browser(address).sign_in(key)).status_code


async def test_one_address_may_guess_a_few_times(web: Web) -> None:
    assert [await guess(web, "10.1.1.1") for _ in range(12)] == [401] * 10 + [429] * 2
    assert await guess(web, "10.1.1.1", web.keys["operator"]) == 429  # also with the right key
    assert await guess(web, "10.1.1.2", web.keys["operator"]) == 303  # others are let in
    await age(web, "sign_in_attempt", "at", "16 minutes")
    assert await guess(web, "10.1.1.1", web.keys["operator"]) == 303


async def test_guesses_at_the_same_time_are_counted_as_many(web: Web) -> None:
    answers = await asyncio.gather(*(guess(web, "10.1.1.1") for _ in range(30)))
    assert answers.count(401) <= 10
    assert answers.count(429) >= 20


async def test_all_addresses_together_may_guess_a_number_of_times(db: Database) -> None:
    chosen = Settings(web={"sign_in_attempts_in_all": 15})  # type: ignore[arg-type]
    async with serve(db, chosen) as web:
        answers = [await guess(web, f"10.1.{n}.1") for n in range(18)]
        assert answers == [401] * 15 + [429] * 3
        refused = await web.make_browser("10.9.9.9").sign_in(web.keys["operator"])
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 60
        link = {"token": await make_token(web)}  # the operator is not locked out by the guesses of others
        assert (await web.make_client(address="10.9.9.9").get("/", params=link)).status_code == 303


async def test_guesses_with_links_are_counted_too(web: Web) -> None:
    client = web.make_client(address="10.1.1.1")
    answers = [(await client.get("/", params={"token": "x" * 43})).status_code for _ in range(12)]
    assert answers == [401] * 10 + [429] * 2


async def test_who_signs_in_rightly_has_used_no_attempt(web: Web) -> None:
    for _ in range(15):
        assert await guess(web, "10.1.1.1", web.keys["operator"]) == 303


async def test_what_is_no_key_is_refused_with_a_sentence(web: Web) -> None:
    for key in ("", "gm_", "gm_" + "x" * 43, "\x00", "ž" * 50, "' OR 1=1 --"):
        answer = await web.make_browser().sign_in(key)
        assert (key, answer.status_code, "unknown or was revoked" in answer.text) == (key, 401, True)


# --- what is told


async def test_no_secret_is_in_a_log_or_an_answer(web: Web, capfd: pytest.CaptureFixture[str]) -> None:
    token, key = await make_token(web), "gm_" + "S" * 43
    answers = [
        await web.client(None).get("/", params={"token": token}),
        await web.client(None).get("/", params={"token": token}),
        await web.make_browser().sign_in(key),
        await web.make_client(key).get("/api/keys"),
        await web.client(None).get("/api/keys", headers={"Authorization": f"Basic {key}"}),
    ]
    told = "".join(capfd.readouterr()) + "".join(str(one.headers) + one.text for one in answers)
    assert token not in told
    assert key not in told


async def test_the_time_of_the_last_use_is_kept(web: Web) -> None:
    await web.client("acme viewer").get("/audit")
    await web.client("acme viewer").get("/audit")
    keys = (await web.client("operator").get("/api/keys")).json()["items"]
    used = {key["name"]: key["last_used_at"] for key in keys}
    assert used["acme viewer"] is not None
    assert used["globex viewer"] is None


async def test_the_page_of_the_form_names_its_field(web: Web) -> None:
    page = await web.client(None).get("/sign-in", headers={"Host": ADDRESS.removeprefix("http://")})
    assert re.search(r'<input id="key" name="key" type="password"', page.text)
    assert page.headers["cache-control"] in ("no-store", "private, no-cache")
