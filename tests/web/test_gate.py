"""The gate: which names and pages are let in, how failures look, how much one may send and ask."""

import asyncio
import json
from typing import Any

import pytest
from fastapi import APIRouter, Request
from serving import SAME_ORIGIN, Web, serve
from starlette.types import Message

from gristmill.db import Database
from gristmill.errors import Disconnected, NoSpace, Overloaded, Permanent, Refused, Unknown, Unreachable
from gristmill.serving import Manager, Viewer, take_files
from gristmill.settings import Settings

PROBLEM = "application/problem+json"


def add_routes(web: Web) -> None:
    """Routes of a room that the house does not have; they come before the first request."""
    routes = APIRouter(prefix="/api/belfry")

    @routes.get("/fail/{kind}")
    async def fail(kind: str, caller: Viewer) -> None:
        raise {
            "unknown": Unknown("There is no bell 7."),
            "refused": Refused("The bell is broken: mend it first."),
            "permanent": Permanent("This is no bell."),
            "busy": Overloaded("The ringer is away.", Settings().web.link),
            "away": Unreachable("the database does not answer"),
            "full": NoSpace("the disk is full"),
            "bug": ZeroDivisionError("the combination of the safe is 4711"),
            "half": UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"),
        }[kind]

    @routes.post("/ring")
    async def ring(body: dict[str, int], caller: Manager) -> dict[str, int]:
        return body

    @routes.post("/melt", openapi_extra=take_files("documents"))
    async def melt(request: Request, caller: Manager) -> int:
        size = 0
        async for piece in request.stream():
            size += len(piece)
        return size

    web.app.include_router(routes)


@pytest.fixture
async def belfry(web: Web) -> Web:
    add_routes(web)
    return web


# --- names and pages


async def test_a_rebound_name_learns_nothing(web: Web) -> None:
    for host in ("evil.example", "evil.example:6455", "127.0.0.1.evil.example", "localhost.evil.example"):
        for path in ("/sign-in", "/api/keys", "/healthz", "/metrics", "/static/1/console.css"):
            answer = await web.client("operator").get(path, headers={"Host": host})
            assert (host, path, answer.status_code, "web.hosts" in answer.text) == (host, path, 403, True)


async def test_names_of_this_machine_and_bare_addresses_are_let_in(web: Web) -> None:
    for host in ("localhost:6455", "127.0.0.1:6455", "[::1]:6455", "box.local", "203.0.113.7:6455"):
        answer = await web.client("operator").get("/api/keys", headers={"Host": host})
        assert (host, answer.status_code) == (host, 200)


async def test_configured_names_are_let_in(db: Database) -> None:
    async with serve(db, Settings(web={"hosts": ["*.example.org"]})) as web:  # type: ignore[arg-type]
        answers = [
            (await web.client("operator").get("/api/keys", headers={"Host": host})).status_code
            for host in ("mill.example.org", "Mill.Example.org:443", "mill.example.com")
        ]
    assert answers == [200, 200, 403]


async def test_a_foreign_origin_is_refused_also_when_it_only_reads(web: Web) -> None:
    for origin in ("https://evil.example", "null", "http://127.0.0.1:3000", "http://127.0.0.1:6455.evil"):
        for path in ("/api/keys", "/audit", "/api/documents/1/events"):
            answer = await web.client("operator").get(path, headers={"Origin": origin})
            assert (origin, path, answer.status_code) == (origin, path, 403)


@pytest.mark.parametrize(("dest", "status"), [("document", 200), ("iframe", 403), ("object", 403), (None, 403)])
async def test_from_a_foreign_page_only_a_whole_document_is_visited(web: Web, dest: str | None, status: int) -> None:
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"} | ({"Sec-Fetch-Dest": dest} if dest else {})
    assert (await web.client("operator").get("/audit", headers=visit)).status_code == status


async def test_no_answer_allows_other_origins(web: Web) -> None:
    answer = await web.client("operator").get("/api/keys", headers={"Origin": "http://127.0.0.1:6455"})
    assert answer.status_code == 200
    assert not [name for name in answer.headers if name.startswith("access-control")]


# --- forged requests


async def test_a_change_needs_the_token_in_a_header_or_in_the_form(web: Web) -> None:
    browser = web.make_browser()
    await browser.sign_in(web.keys["operator"])
    token, wish = await browser.read_token(), {"name": "anna"}
    for headers, data, status in (
        ({}, wish, 403),
        ({"X-CSRF-Token": "0" * 64}, wish, 403),
        ({}, {**wish, "csrf": "0" * 64}, 403),
        ({"X-CSRF-Token": token}, wish, 200),
        ({}, {"name": "berta", "csrf": token}, 200),
    ):
        answer = await browser.client.post("/keys", data=data, headers={**SAME_ORIGIN, **headers})
        assert answer.status_code == status
    other = web.make_browser()
    await other.sign_in(web.keys["operator"])
    answer = await other.client.post("/keys", data=wish, headers={**SAME_ORIGIN, "X-CSRF-Token": token})
    assert answer.status_code == 403


async def test_a_program_with_a_key_needs_no_token(web: Web) -> None:
    assert (await web.client("operator").post("/api/keys", json={"name": "anna"})).status_code == 201


# --- failures


@pytest.mark.parametrize(
    ("kind", "status", "sentence"),
    [
        ("unknown", 404, "There is no bell 7."),
        ("refused", 422, "The bell is broken: mend it first."),
        ("permanent", 422, "This is no bell."),
        ("busy", 503, "The ringer is away."),
        ("away", 503, "the database does not answer"),
        ("full", 507, "the disk is full"),
        ("half", 422, "A text holds half of a character (a lone surrogate): send it whole."),
    ],
)
async def test_an_error_of_the_house_is_a_problem_with_its_sentence(
    belfry: Web, kind: str, status: int, sentence: str
) -> None:
    answer = await belfry.client("operator").get(f"/api/belfry/fail/{kind}")
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)
    assert (answer.json()["status"], answer.json()["detail"]) == (status, sentence)
    assert ("retry-after" in answer.headers) == (status == 503)


class Log:
    """Keeps what is logged as an error: the stream of the real log may be that of an earlier test."""

    def __init__(self) -> None:
        self.errors: list[dict[str, Any]] = []

    def error(self, event: str, **values: Any) -> None:
        self.errors.append({"event": event, **values})


async def test_a_bug_shows_nothing_of_itself_but_an_id_that_the_log_has(
    belfry: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    monkeypatch.setattr("gristmill.web.gate.failures.log", log)
    answer = await belfry.client("operator").get("/api/belfry/fail/bug")
    assert (answer.status_code, answer.headers["content-type"]) == (500, PROBLEM)
    assert "4711" not in answer.text
    assert "ZeroDivision" not in answer.text
    (logged,) = log.errors
    assert logged["id"] == answer.json()["id"]
    assert isinstance(logged["exc_info"], ZeroDivisionError)


async def test_what_is_not_there_and_what_cannot_be_done_are_problems_too(web: Web) -> None:
    for method, path, status in (
        ("GET", "/api/nothing", 404),
        ("DELETE", "/api/keys", 405),
        ("POST", "/healthz", 405),
        ("GET", "/static/1/nothing.js", 404),
    ):
        answer = await web.client("operator").request(method, path)
        assert (path, answer.status_code, answer.headers["content-type"]) == (path, status, PROBLEM)
        assert ("allow" in answer.headers) == (status == 405)


async def test_a_person_gets_a_page_instead(web: Web) -> None:
    answer = await web.client("operator").get("/nothing")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "There is nothing here." in answer.text


async def test_a_body_that_is_wrong_is_a_problem_too(web: Web) -> None:
    for body in (b"", b"{", b"[]", b'{"name": 7}', b'{"name": ""}', b"\xff\xfe", b"null", b'{"name"'):
        kind = {"Content-Type": "application/json"}
        answer = await web.client("operator").post("/api/keys", content=body, headers=kind)
        assert (body, answer.status_code, answer.headers["content-type"]) == (body, 422, PROBLEM)


@pytest.mark.parametrize(("kind", "body"), [("text/plain", b'{"name": "a"}'), ("application/json", b"[1]")])
@pytest.mark.parametrize("path", ["/api/keys", "/v1/chat/completions"])
async def test_a_body_that_is_no_json_object_is_told_what_to_send(web: Web, path: str, kind: str, body: bytes) -> None:
    answer = await web.client("operator").post(path, content=body, headers={"Content-Type": kind})
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith("The body must be a JSON object")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"{bad", "The body is not JSON: Expecting property name enclosed in double quotes at character 2."),
        (b'{"name": "a', "The body is not JSON: Unterminated string starting at character 10."),
        (b'{"name": "\\q"}', "The body is not JSON: Invalid \\escape at character 11."),
        (b"[" * 100_000, "The JSON of the body is nested too deep"),
        (b'{"name": "\xff"}', "The body is not UTF-8 text."),
    ],
)
async def test_a_body_that_is_no_json_is_told_the_place(web: Web, body: bytes, sentence: str) -> None:
    kind = {"Content-Type": "application/json"}
    answer = await web.client("operator").post("/api/keys", content=body, headers=kind)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(sentence)


async def test_a_wrong_value_is_not_repeated(web: Web) -> None:
    answer = await web.client("operator").post("/api/keys", json={"name": "a", "role": "sesame-secret"})
    assert answer.status_code == 422
    assert "sesame-secret" not in answer.text
    assert answer.json()["faults"][0]["at"] == "body.role"


@pytest.mark.parametrize("text", ["a\x00b", "\ud800"])
async def test_a_text_that_the_database_cannot_keep_is_refused(web: Web, text: str) -> None:
    body = json.dumps({"name": "x", "client": text}).encode()
    answer = await web.client("operator").post("/api/keys", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422


# --- sizes


async def test_a_body_that_is_too_large_is_refused_by_what_it_says_and_by_what_it_is(belfry: Web) -> None:
    large = b"x" * (1024**2 + 1)

    async def lie() -> Any:
        for _ in range(5):
            yield b"x" * 1024 * 512

    client = belfry.client("operator")
    for content in (large, lie()):
        answer = await client.post("/api/belfry/ring", content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.headers["content-type"]) == (413, PROBLEM)
        assert "1 MB" in answer.json()["detail"]


async def test_a_route_that_takes_files_takes_large_ones(belfry: Web) -> None:
    answer = await belfry.client("operator").post("/api/belfry/melt", content=b"x" * 3 * 1024**2)
    assert (answer.status_code, answer.json()) == (200, 3 * 1024**2)


@pytest.mark.parametrize("caller", [None, "operator viewer", "acme viewer"])
async def test_who_may_send_no_files_sends_little_also_to_a_route_that_takes_them(
    belfry: Web, caller: str | None
) -> None:
    answer = await belfry.client(caller).post("/api/belfry/melt", content=b"x" * 3 * 1024**2)
    assert (answer.status_code, answer.headers["content-type"]) == (413, PROBLEM)


async def test_a_form_is_not_held_beyond_the_limit_while_its_token_is_looked_for(web: Web) -> None:
    browser, sent = web.make_browser(), 0
    await browser.sign_in(web.keys["operator"])

    async def pour() -> Any:
        nonlocal sent
        for _ in range(40):
            sent += 1
            yield b"x" * 1024 * 512

    headers = {**SAME_ORIGIN, "Content-Type": "application/x-www-form-urlencoded"}
    answer = await browser.client.post("/records", content=pour(), headers=headers)
    assert (answer.status_code, sent) == (413, 3)


async def test_a_file_that_is_too_large_is_refused(db: Database) -> None:
    chosen = Settings(documents={"max_bytes": 1024}, web={"body_limit": 2048})  # type: ignore[arg-type]
    async with serve(db, chosen) as web:
        add_routes(web)
        answer = await web.client("operator").post("/api/belfry/melt", content=b"x" * 4096)
    assert answer.status_code == 413


async def test_a_large_upload_is_keyed_without_being_held_back(belfry: Web) -> None:
    """The route gets each piece as it comes, and a repetition is recognized by all of them."""
    client, key = belfry.client("operator"), {"Idempotency-Key": "upload"}
    first = await client.post("/api/belfry/melt", content=b"x" * 2 * 1024**2, headers=key)
    again = await client.post("/api/belfry/melt", content=b"x" * 2 * 1024**2, headers=key)
    other = await client.post("/api/belfry/melt", content=b"x" * 1024**2 + b"y" * 1024**2, headers=key)
    assert (first.json(), again.json(), again.headers["idempotency-replayed"]) == (2 * 1024**2, 2 * 1024**2, "true")
    assert other.status_code == 422


async def test_a_form_that_is_sent_again_has_another_boundary_and_is_the_same(belfry: Web) -> None:
    client, key = belfry.client("operator"), {"Idempotency-Key": "form"}
    answers = [
        await client.post("/api/belfry/melt", files={"file": ("a.txt", content)}, headers=key)
        for content in (b"one" * 100_000, b"one" * 100_000, b"two" * 100_000)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 422]


async def test_what_only_reads_is_asked_again_when_the_database_hung_up(belfry: Web) -> None:
    tried: list[str] = []

    async def hang_up_once(request: Request, caller: Viewer) -> str:
        tried.append(request.method)
        if len(tried) % 2:
            raise Disconnected("the connection was lost")
        return "rung"

    belfry.app.add_api_route("/api/bells/shaky", hang_up_once, methods=["GET", "POST"])
    client = belfry.client("acme manager")
    assert (await client.get("/api/bells/shaky")).json() == "rung"
    assert (await client.post("/api/bells/shaky")).status_code == 503  # whether it was done, nobody knows
    assert tried == ["GET", "GET", "POST"]


FORM = b"multipart/form-data; boundary=x"


async def test_an_upload_that_is_cut_off_is_no_error_of_ours(belfry: Web, capsys: pytest.CaptureFixture[str]) -> None:
    told: list[Message] = []

    async def receive() -> Message:
        told.append({"type": "http.disconnect"})
        return told[-1]

    async def send(message: Message) -> None:
        told.append(message)

    key = belfry.keys["acme manager"].encode()
    headers = [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer " + key), (b"content-type", FORM)]
    scope = {"type": "http", "method": "POST", "path": "/api/documents", "raw_path": b"/api/documents"}
    scope |= {"query_string": b"", "headers": headers, "client": ("127.0.0.1", 1)}
    await belfry.app({**scope, "scheme": "http", "server": ("127.0.0.1", 80), "http_version": "1.1"}, receive, send)
    assert "Traceback" not in "".join(capsys.readouterr())
    assert [one["status"] for one in told if "status" in one] == [422]


# --- rates


async def test_a_key_that_asks_too_often_waits_and_others_do_not(db: Database) -> None:
    chosen = Settings(web={"rate": 1, "burst": 20})  # type: ignore[arg-type]
    async with serve(db, chosen) as web:
        answers = [await web.client("acme viewer").get("/api/openapi.json") for _ in range(40)]
        statuses = [answer.status_code for answer in answers]
        assert statuses[:20] == [200] * 20
        assert 429 in statuses
        refused = answers[statuses.index(429)]
        assert (refused.headers["retry-after"], refused.headers["content-type"]) == ("1", PROBLEM)
        assert (await web.client("globex viewer").get("/api/openapi.json")).status_code == 200
        async with db.transaction() as tx:
            await tx.execute("UPDATE web_allowance SET at = at - interval '1 minute'")
        await asyncio.sleep(0.6)  # the server asks the database again after this time
        assert (await web.client("acme viewer").get("/api/openapi.json")).status_code == 200


async def test_two_servers_give_one_allowance(db: Database) -> None:
    chosen = Settings(web={"rate": 1, "burst": 20})  # type: ignore[arg-type]
    async with serve(db, chosen) as one:
        other = one.make_twin(chosen)
        answers = [
            (await web.client("acme viewer").get("/api/openapi.json")).status_code
            for _ in range(20)
            for web in (one, other)
        ]
    assert 20 <= answers.count(200) <= 24


async def test_of_many_requests_at_once_none_takes_a_portion_from_the_others(db: Database) -> None:
    chosen = Settings(web={"rate": 100, "burst": 100})  # type: ignore[arg-type]
    async with serve(db, chosen) as web:
        client = web.client("acme viewer")
        answers = await asyncio.gather(*(client.get("/api/openapi.json") for _ in range(40)))
        assert {answer.status_code for answer in answers} == {200}
        async with db.transaction() as tx:
            left = await tx.value("SELECT tokens FROM web_allowance WHERE caller LIKE 'key %%'")
    assert left >= 60  # each of four portions served ten requests


async def test_a_request_is_seldom_a_write(web: Web) -> None:
    async with web.db.transaction() as tx:
        before = await tx.value("SELECT pg_current_wal_insert_lsn()")
    client = web.client("acme viewer")
    await client.get("/audit")
    async with web.db.transaction() as tx:
        tokens = await tx.value("SELECT tokens FROM web_allowance")
    for _ in range(8):
        await client.get("/audit")
    async with web.db.transaction() as tx:
        assert await tx.value("SELECT tokens FROM web_allowance") == tokens
        assert before is not None


# --- what is polled


async def test_what_has_not_changed_is_not_sent_again(web: Web) -> None:
    client = web.client("operator")
    for path in ("/api/keys", "/api/audit"):
        first = await client.get(path)
        etag = first.headers["etag"]
        same = await client.get(path, headers={"If-None-Match": f'"other", {etag}'})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", etag)
        assert "content-security-policy" in same.headers
    await client.post("/api/keys", json={"name": "anna"})
    changed = await client.get("/api/keys", headers={"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200


async def test_what_is_of_one_caller_is_kept_by_no_shared_cache(web: Web) -> None:
    answer = await web.client("operator").get("/api/keys")
    assert answer.headers["cache-control"] == "private, no-cache"
    assert {"Authorization", "Cookie"} <= {one.strip() for one in answer.headers["vary"].split(",")}
    problem = await web.client("operator").get("/api/nothing")
    assert problem.headers["cache-control"] == "no-store"
