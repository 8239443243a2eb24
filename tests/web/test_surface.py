"""Every route and every page, with no key, the wrong role and the key of another client: nothing of it is let out.

The routes are found by themselves (`surface.py`): a room that joins later is covered without a line here.
"""

import asyncio
import json
import re
import sys
from difflib import unified_diff
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import httpx
import pytest
from serving import SAME_ORIGIN, Web
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from surface import OPEN, Call, find_calls, make_body

from gristmill.db import Database
from gristmill.web.api import ingest

sys.path.insert(0, str(Path(__file__).parents[1] / "scopes"))
from neighbour import KEY, NUMBER, SECRET, move_in, put_belongings, set_up_machine

NOBODY = 7_700_999  # an id as long as the neighbour's, of nothing at all
ROLES = ("viewer", "manager", "admin")
STREAM = 5.0  # seconds until a stream is left that goes on for ever, and that nobody wrote down here
ENDLESS = re.compile(r"/api/items/status/events|/api/documents/\d+/events|/mcp")
SILENT = ("/mcp",)  # of these, those that begin with nothing
# what an answer may say of the neighbour because the question said it
HIDDEN = (SECRET, SECRET.replace("'", "&#39;"), "10.7.7.7", "urn:beta", "person::neighbour", "person::friend")
VOLATILE = re.compile(
    r'data-now="[^"]*"|<time.*?</time>|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^"<]*|name="csrf" value="\w*"|[0-9a-f]{64}'
)


class Impatient:
    """Leaves a stream that goes on for ever as soon as it has told the state of things."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_left = is_endless = False

        async def send_beginning(message: Message) -> None:
            nonlocal has_left, is_endless
            if has_left:
                return
            if message["type"] == "http.response.start":
                kind = Headers(raw=message["headers"]).get("content-type", "")
                is_endless = kind.startswith("text/event-stream") and bool(ENDLESS.fullmatch(scope["path"]))
            has_left = is_endless and (scope["path"] in SILENT or b"data:" in message.get("body", b""))
            if has_left and message["type"] == "http.response.body":
                message = {**message, "more_body": False}
            await send(message)
            if has_left and message["type"] == "http.response.start":
                await send({"type": "http.response.body"})

        await self.app(scope, receive, send_beginning)


@pytest.fixture
def web(web: Web, monkeypatch: pytest.MonkeyPatch) -> Web:
    monkeypatch.setattr(ingest, "PATIENCE", 0.0)  # no worker runs here: who waits for one gets a 202
    web.entrance = Impatient(web.app)
    return web


async def ask(web: Web, caller: str | None, call: Call, url: str, **more: Any) -> httpx.Response:
    """The answer; of a stream that does not end, that it began."""
    try:
        async with asyncio.timeout(STREAM):
            return await web.client(caller).request(call.method, url, **more)
    except TimeoutError:
        return httpx.Response(299, text="a stream that goes on")


def show(answer: httpx.Response) -> str:
    """Everything that a caller sees."""
    return "\n".join(
        [str(answer.status_code), *(f"{name}: {value}" for name, value in answer.headers.items()), answer.text]
    )


def choose_values(call: Call, number: int, text: str) -> dict[str, str]:
    """A value for each parameter of a path: a number, or a text where the route takes texts."""
    fields = {field.alias: field.field_info.annotation for field in call.route.dependant.path_params}
    return {name: str(number) if fields.get(name) is int else text for name in call.parameters}


# --- who is asked


def test_every_route_asks_for_a_caller_or_stands_on_the_list(web: Web) -> None:
    calls = find_calls(web.app)
    assert len(calls) > 5
    assert {call.path for call in calls if call.role is None} <= OPEN | {"/api/openapi.json"}


async def test_nobody_comes_in_without_a_key(web: Web) -> None:
    for call in find_calls(web.app):
        if call.role is None:
            continue
        answer = await ask(web, None, call, call.fill(choose_values(call, NUMBER, "beta")))
        if call.is_for_programs:
            assert (str(call), answer.status_code) == (str(call), 401)
            assert answer.headers["content-type"] == "application/problem+json"
        else:
            assert (str(call), answer.status_code, answer.headers.get("location")) == (str(call), 303, "/sign-in")


async def test_nobody_does_what_needs_a_higher_role(web: Web) -> None:
    for call in find_calls(web.app):
        if call.role is None:
            continue
        body, query = make_body(web.app, call, NUMBER, "beta")
        url = call.fill(choose_values(call, NUMBER, "beta"))
        lower = ROLES[: ROLES.index(call.role)]
        refused = [f"{who} {role}" for who in ("acme", "operator") for role in lower]
        refused += [f"acme {role}" for role in ROLES] if call.operator else []
        for caller in refused:
            answer = await ask(web, caller, call, url, json=body, params=query)
            assert (str(call), caller, answer.status_code) == (str(call), caller, 403)


# --- the client next door


async def test_what_a_client_sees_does_not_change_when_another_moves_in(web: Web) -> None:
    """No name, no id and no count of the neighbour is in any list or page."""
    await stop_the_clock(web)  # a chart that begins a new minute would look changed
    calls = [call for call in find_calls(web.app) if call.is_reading and not call.parameters and call.role]
    async with web.db.transaction() as tx:
        await set_up_machine(tx)
    before = {str(call): await look(web, call) for call in calls}
    async with web.db.transaction() as tx:
        await put_belongings(tx)
    for call in calls:
        assert list(unified_diff(before[str(call)], await look(web, call), n=0)) == [], str(call)


async def stop_the_clock(web: Web) -> None:
    """In this test's own database it is always now."""
    async with web.db.transaction() as tx:
        await tx.execute(STOPPED_CLOCK)


STOPPED_CLOCK = """
DO $do$ BEGIN
  EXECUTE format('CREATE OR REPLACE FUNCTION clock() RETURNS timestamptz LANGUAGE sql STABLE
                  AS $$ SELECT %%L::timestamptz $$', clock());
END $do$
"""


async def look(web: Web, call: Call) -> list[str]:
    _, query = make_body(web.app, call, 1, "mill")
    answers = [await ask(web, caller, call, call.path, params=query) for caller in ("acme admin", "acme/one viewer")]
    return [line for one in answers for line in VOLATILE.sub("", f"{one.status_code} {one.text}").splitlines()]


async def test_an_id_of_another_client_answers_like_one_that_does_not_exist(web: Web) -> None:
    async with web.db.transaction() as tx:
        await move_in(tx)
    for call in find_calls(web.app):
        if call.role is None or not call.parameters:
            continue
        for caller in ("acme admin", "acme/one admin"):
            answers = [
                await try_things(web, call, caller, number, text)
                for number, text in ((NUMBER, KEY), (NOBODY, "person::nobodyyyy"))
            ]
            assert answers[0] == answers[1], (str(call), caller)


async def test_a_filter_by_something_of_another_client_finds_as_much_as_one_by_nothing(web: Web) -> None:
    """Each parameter behind the question mark, one at a time: a client, an id, a name, a text of the neighbour's."""
    async with web.db.transaction() as tx:
        await move_in(tx)
    for call in find_calls(web.app):
        if call.role is None or not call.is_reading or call.parameters:
            continue
        _, query = make_body(web.app, call, 1, "mill")
        for name, kind in call.queries.items():
            texts = [(KEY, "person::nobodyyyy"), (SECRET, SECRET.replace("neighbour", "nobodyyyy"))]
            texts += [] if name == "queue" else [("beta", "zzyx")]  # queues are the machine's, and this one is there
            pairs = [(NUMBER, NOBODY)] if kind is int else texts
            for theirs, nobodys in pairs if kind in (int, str) else []:
                answers = [
                    hide(await ask(web, "acme admin", call, call.path, params={**query, name: value}), str(value))
                    for value in (theirs, nobodys)
                ]
                assert answers[0] == answers[1], (str(call), name, theirs)


def hide(answer: httpx.Response, value: str) -> str:
    """An answer as if any value had been asked for."""
    text = VOLATILE.sub("", f"{answer.status_code}\n{answer.text}")
    spellings = {value, quote(value), quote(value, safe=""), quote_plus(value), escape(value), escape(quote(value))}
    spellings |= {json.dumps(value)[1:-1], escape(value).replace("&#x27;", "&#39;")}
    for one in sorted(spellings, key=len, reverse=True):
        text = text.replace(one, "VALUE")
    return text


async def try_things(web: Web, call: Call, caller: str, number: int, text: str) -> str:
    """The answer for this id, written as if it were any id."""
    body, query = make_body(web.app, call, number, text)
    answer = await ask(web, caller, call, call.fill(choose_values(call, number, text)), json=body, params=query)
    shown = VOLATILE.sub("", show(answer))
    shown = re.sub(r"(?m)^etag: .*$", "", shown)  # it is of a text that repeats the id
    return shown.replace(str(number), "ID").replace(text, "TEXT").replace(text.replace(":", "%3A"), "TEXT")


async def test_no_answer_holds_anything_of_another_client(web: Web) -> None:
    async with web.db.transaction() as tx:
        await move_in(tx)
    for call in find_calls(web.app):
        if call.role is None:
            continue
        for number, text in ((NUMBER, SECRET[:1]), (NUMBER, "beta"), (1, "*")):
            body, query = make_body(web.app, call, number, text)
            url = call.fill(choose_values(call, number, text))
            for caller in ("acme admin", "acme/one manager", "acme viewer"):
                shown = show(await ask(web, caller, call, url, json=body, params=query))
                assert not [one for one in HIDDEN if one in shown], (str(call), caller)


async def test_nothing_of_another_client_is_changed(web: Web) -> None:
    async with web.db.transaction() as tx:
        await move_in(tx)
    before = await read_neighbour(web.db)
    for call in find_calls(web.app):
        if call.role is None or call.is_reading:
            continue
        for text in ("beta", KEY):
            body, query = make_body(web.app, call, NUMBER, text)
            url = call.fill(choose_values(call, NUMBER, text))
            await ask(web, "acme admin", call, url, json=body, params=query)
        assert await read_neighbour(web.db) == before, str(call)


TABLES = """
SELECT c.relname AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'scope'
 WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace ORDER BY 1
"""


async def read_neighbour(db: Database) -> dict[str, list[str]]:
    """All rows of the neighbour, in all tables."""
    async with db.transaction() as tx:
        return {
            table.name: [
                row.text
                for row in await tx.all(f"SELECT t::text AS text FROM {table.name} t WHERE scope = {NUMBER} ORDER BY 1")  # pyright: ignore
            ]
            for table in await tx.all(TABLES)
        }


# --- browsers


async def test_a_browser_changes_nothing_without_the_token_of_its_session(web: Web) -> None:
    browser = web.make_browser()
    await browser.sign_in(web.keys["operator"])
    for call in find_calls(web.app):
        if call.role is None or call.is_reading:
            continue
        url = call.fill(choose_values(call, NUMBER, "beta"))
        answer = await browser.client.request(call.method, url, headers=SAME_ORIGIN, json={})
        assert (str(call), answer.status_code) == (str(call), 403)


async def test_every_answer_carries_the_policies_for_browsers(web: Web) -> None:
    for call in find_calls(web.app):
        url = call.fill(choose_values(call, NUMBER, "beta"))
        for caller in (None, "operator") if call.is_reading else (None,):
            answer = await ask(web, caller, call, url)
            if answer.status_code == 299:
                continue
            policy = answer.headers["content-security-policy"]
            assert "default-src 'self'" in policy, str(call)
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "cache-control" in answer.headers
            if "text/html" in answer.headers.get("content-type", ""):
                refuse_inline(answer.text, str(call))


def refuse_inline(page: str, place: str) -> None:
    """What the policy would keep a browser from running or drawing."""
    assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>", page), place
    assert not re.search(r"<style\b|\sstyle=\"|\son\w+=\"|javascript:", page), place
    for address in re.findall(r'(?:src|href)="([^"]+)"', page):
        assert not re.match(r"(?:https?:)?//", address), (place, address)


@pytest.mark.parametrize("headers", [{"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
async def test_pages_of_other_sites_call_nothing(web: Web, headers: dict[str, str]) -> None:
    for call in find_calls(web.app):
        url = call.fill(choose_values(call, NUMBER, "beta"))
        answer = await ask(web, "operator", call, url, headers=headers)
        assert (str(call), answer.status_code) == (str(call), 403)
