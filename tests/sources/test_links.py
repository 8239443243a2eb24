"""Links in the database: noted once, decided by people, fetched when they are safe, gone with their documents."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from gristmill.db import Database, Tx
from gristmill.documents import Item, remove_source, take_in
from gristmill.errors import Overloaded, Refused, Transient, Unknown
from gristmill.ids import TaskId
from gristmill.processes import ProcessPool
from gristmill.queue import Done, Skip
from gristmill.queue.context import ChildMember, Running, set_current
from gristmill.scopes import Scope, scope_id
from gristmill.settings import FetchSettings
from gristmill.sources import (
    Fetcher,
    Link,
    LinkedDocument,
    count_waiting_links,
    decide_one,
    explain_url,
    extract_links,
    find_link,
    list_links,
    list_places,
    list_rules,
    load_link,
    note_links,
    refresh_one,
    remove_rule,
    set_rule,
)
from gristmill.sources.link.canonical import name_urn
from gristmill.sources.link.fetching import LinkFetcher
from gristmill.sources.link.letters import FetchLink, ReviewLinks
from gristmill.sources.link.reviewing import PORTION, review_links
from web_server import Names, Turns, WebServer, run_web_server

ACME, BETA = Scope("acme"), Scope("beta")
ARTICLE = (
    "<html><head><title>The mill &amp; its wheel</title></head><body><nav><a href='/x'>menu</a></nav>"
    "<article><h1>Mill</h1><p>A mill grinds grain into flour with the power of water, of wind or of animals,"
    " as it has done for two thousand"
    " years, and <a href='https://next.example/page'>the next page</a> tells of its wheel.</p></article></body></html>"
)


async def note(tx: Tx, text: str, urn: str = "email::1", scope: Scope = ACME, **more: Any) -> None:
    document = more.pop("document", None)
    await note_links(tx, [LinkedDocument(urn, scope, extract_links(text), document)], **more)


async def only(tx: Tx) -> Link:
    (link,) = await list_links(tx)
    return link


async def letters(db: Database, kind: str = "links.fetch") -> list[dict[str, Any]]:
    async with db.transaction() as tx:
        rows = await tx.all("SELECT payload FROM task WHERE kind = %(kind)s ORDER BY id", kind=kind)
    return [row.payload for row in rows]


async def review(db: Database) -> int:
    """Answer all letters about rules that have changed; how many there were."""
    done = 0
    while True:
        waiting = await letters(db, "links.review")
        if done == len(waiting):
            return done
        for payload in waiting[done:]:
            answer = await review_links(ReviewLinks(**payload), settings=FetchSettings())
            assert answer.write is not None
            async with db.transaction() as tx:
                await answer.write(tx)
            done += 1


# --- noting


async def test_an_address_is_one_link_with_an_edge_to_each_place(db: Database) -> None:
    async with db.transaction() as tx:
        await note(tx, "Read https://a.org/x?utm_source=mail today.", "email::1")
        await note(tx, "[this](https://a.org/x#part)", "jira::KEY-1")
        await note(tx, "[this](https://a.org/x#part)", "jira::KEY-1")
        link = await only(tx)
        places = await list_places(tx, link.id)
    assert (link.url, link.verdict, link.state, link.places) == ("https://a.org/x", "uncertain", "waiting", 2)
    assert {(one.urn, one.label) for one in places} == {("email::1", ""), ("jira::KEY-1", "this")}
    assert "Read https://a.org/x?utm_source=mail today." in {one.context for one in places}
    assert await letters(db) == [], "nobody has decided: nothing is fetched"


async def test_a_safe_link_is_one_task_however_often_it_is_found(db: Database) -> None:
    async with db.transaction() as tx:
        await set_rule(tx, ACME, "allow", "a.org", "ada")
        for n in range(3):
            await note(tx, "https://a.org/x", f"email::{n}")
        link = await only(tx)
    assert link.state == "queued"
    assert await letters(db) == [{"link": link.id}]
    async with db.transaction() as tx:
        assert await tx.value("SELECT scope FROM task WHERE id = %(id)s", id=link.task) == await scope_id(tx, ACME)


async def test_two_documents_with_the_same_links_do_not_wait_for_each_other_for_ever(db: Database) -> None:
    async with db.transaction() as tx:
        await set_rule(tx, ACME, "allow", "a.org", "ada")
    texts = [" ".join(f"https://a.org/{n}" for n in order) for order in (range(40), reversed(range(40)))]

    async def add(n: int) -> None:
        async with db.transaction() as tx:
            await note(tx, texts[n % 2], f"email::{n}")

    async with asyncio.timeout(60):
        await asyncio.gather(*(add(n) for n in range(8)))
    assert len(await letters(db)) == 40
    async with db.transaction() as tx:
        assert {one.places for one in await list_links(tx)} == {8}


async def test_a_newer_version_takes_its_lost_links_along(db: Database) -> None:
    async with db.transaction() as tx:
        await note(tx, "https://a.org/x https://a.org/y")
        await note(tx, "https://a.org/y https://a.org/z")
        places = {one.url: one.places for one in await list_links(tx)}
    assert places == {"https://a.org/y": 1, "https://a.org/z": 1}  # nobody had decided about the third


async def test_an_edge_goes_with_its_document(db: Database) -> None:
    async with db.transaction() as tx:
        taken = await take_in(tx, Item("email::1", "mail.txt", "see https://a.org/x", ACME))
        await note(tx, "see https://a.org/x", document=taken.document)
        link = await only(tx)
        (place,) = await list_places(tx, link.id)
        assert place.name == "mail.txt"
        await remove_source(tx, ACME, "email::1")
        assert await list_places(tx, link.id) == []
        assert await list_links(tx) == []  # nobody had decided about it


async def test_clients_have_their_own_links_and_rules(db: Database) -> None:
    async with db.transaction() as tx:
        await set_rule(tx, ACME, "allow", "a.org", "ada")
        await note(tx, "https://a.org/x", scope=ACME)
        await note(tx, "https://a.org/x", scope=BETA)
        found = {one.client: one for one in await list_links(tx)}
    assert (found["acme"].state, found["beta"].state) == ("queued", "waiting")
    async with db.transaction(seen_from=BETA) as tx:
        assert [one.client for one in await list_links(tx)] == ["beta"]
        assert await list_rules(tx) == []
        assert await count_waiting_links(tx) == 1
        with pytest.raises(Unknown):
            await load_link(tx, found["acme"].id)
        with pytest.raises(Unknown):
            await decide_one(tx, found["acme"].id, "deny", "mallory")
        assert (await find_link(tx, "https://a.org/x#y", BETA)) == found["beta"]
        assert (await find_link(tx, "https://a.org/x", ACME)) is None


async def test_a_label_that_gives_a_link_away_blocks_it_also_when_it_comes_later(db: Database) -> None:
    async with db.transaction() as tx:
        await set_rule(tx, ACME, "allow", "a.org", "ada")
        await note(tx, "https://a.org/x77", "email::1")
        await note(tx, "[Unsubscribe](https://a.org/x77)", "email::2")
        link = await only(tx)
    assert (link.verdict, link.state) == ("blocked", "refused")


# --- people decide


async def test_a_rule_decides_about_all_links_that_wait(db: Database) -> None:
    many = range(PORTION + 50)
    async with db.transaction() as tx:
        for n in many:
            await note(tx, f"https://docs.a.org/{n}", f"email::{n}")
        await note(tx, "https://nota.org/x https://a.org/login https://b.org/y", "email::x")
        await set_rule(tx, ACME, "allow", "*.a.org", "ada")
    assert await review(db) == 2, "a portion at a time"
    async with db.transaction() as tx:
        states = {one.url: one.state for one in await list_links(tx, limit=1000)}
    assert {states[f"https://docs.a.org/{n}"] for n in many} == {"queued"}
    assert states["https://a.org/login"] == "refused"
    assert states["https://nota.org/x"] == states["https://b.org/y"] == "waiting"
    assert len(await letters(db)) == len(many)


async def test_a_rule_that_is_changed_or_taken_back_is_decided_anew(db: Database) -> None:
    async with db.transaction() as tx:
        await note(tx, "https://a.org/x")
        rule = await set_rule(tx, ACME, "deny", "https://a.org/", "ada")
    await review(db)
    async with db.transaction() as tx:
        link = await only(tx)
        assert (link.verdict, link.state, link.reason) == ("unsafe", "refused", "a.org is denied.")
        assert await remove_rule(tx, rule.id) == "a.org"
    await review(db)
    async with db.transaction() as tx:
        assert (await only(tx)).state == "waiting"
        with pytest.raises(Unknown):
            await remove_rule(tx, rule.id)
        await set_rule(tx, ACME, "deny", "a.org", "ada")
        changed = await set_rule(tx, ACME, "allow", "a.org", "bob")
        assert [(one.effect, one.by) for one in await list_rules(tx)] == [("allow", "bob")]
        assert changed.pattern == "a.org"
    await review(db)
    async with db.transaction() as tx:
        assert (await only(tx)).state == "queued"


async def test_a_person_decides_about_one_link(db: Database) -> None:
    async with db.transaction() as tx:
        await note(tx, "https://a.org/x https://a.org/y https://a.org/accept")
        found = {one.url[-1]: one for one in await list_links(tx)}
        allowed = await decide_one(tx, found["x"].id, "allow", "ada")
        denied = await decide_one(tx, found["y"].id, "deny", "ada")
        with pytest.raises(Refused, match=r"is never fetched\. To open it does something"):
            await decide_one(tx, found["t"].id, "allow", "ada")
    assert (allowed.state, allowed.reason, allowed.decided_by) == ("queued", "ada allowed it.", "ada")
    assert (denied.state, denied.reason) == ("refused", "ada denied it.")
    assert await letters(db) == [{"link": allowed.id}]
    async with db.transaction() as tx:
        await set_rule(tx, ACME, "deny", "a.org", "bob")
    await review(db)
    async with db.transaction() as tx:
        assert (await load_link(tx, allowed.id)).state == "queued", "a person decided about this one"


@pytest.mark.parametrize("pattern", ["", "org", "https://", "a b.org", "*.", "localhost", "a.org:99999"])
async def test_a_rule_names_a_domain(db: Database, pattern: str) -> None:
    async with db.transaction() as tx:
        with pytest.raises(Refused):
            await set_rule(tx, ACME, "allow", pattern, "ada")


@pytest.mark.parametrize("domain", ["127.0.0.1", "printer.local", "169.254.169.254", "wiki.corp"])
async def test_a_rule_that_could_never_let_a_link_be_fetched_is_refused(db: Database, domain: str) -> None:
    async with db.transaction() as tx:
        with pytest.raises(Refused, match=f"No rule lets links of {domain} be fetched: "):
            await set_rule(tx, ACME, "allow", domain, "ada")
        assert (await set_rule(tx, ACME, "deny", domain, "ada")).domain == domain


async def test_one_can_ask_about_an_address_that_nobody_has_found(db: Database) -> None:
    async with db.transaction() as tx:
        await set_rule(tx, ACME, "allow", "a.org/docs", "ada")
        verdicts = [
            (await explain_url(tx, f"https://a.org/{path}", ACME, FetchSettings())).verdict
            for path in ("docs/x", "x", "docs/login")
        ]
    assert verdicts == ["safe", "uncertain", "blocked"]


async def test_links_of_a_domain_are_found(db: Database) -> None:
    async with db.transaction() as tx:
        await note(tx, "https://a.org/x https://b.a.org/y https://ba.org/z https://c.org/w")
        assert [one.url for one in await list_links(tx, domain="a.org")] == ["https://b.a.org/y", "https://a.org/x"]
        first = await list_links(tx, limit=2)
        rest = await list_links(tx, before=first[-1].id)
    assert len({one.id for one in (*first, *rest)}) == 4


# --- fetching


@pytest.fixture
async def site() -> AsyncIterator[WebServer]:
    async with run_web_server() as running:
        yield running


@pytest.fixture
async def processes() -> AsyncIterator[ProcessPool]:
    pool = ProcessPool(1)
    yield pool
    await pool.close()


def make_link_fetcher(db: Database, site: WebServer, processes: ProcessPool, **more: Any) -> LinkFetcher:
    known = {"a.org": ["127.0.0.1"], "b.org": ["127.0.0.1"], "www.a.org": ["127.0.0.1"]}
    settings = FetchSettings(allowed_hosts=("127.0.0.0/8",), robots=False, ports=(site.port,), **more)
    fetcher = Fetcher(settings, take=Turns().take, look_up=Names(known).look_up)
    return LinkFetcher(db, fetcher, settings, processes, 60.0, 2**31)


async def fetch(db: Database, fetcher: LinkFetcher, url: str) -> tuple[Done | Skip, Link]:
    """Note a link of an allowed domain and answer its letter, as a worker does."""
    async with db.transaction() as tx:
        await set_rule(tx, ACME, "allow", "a.org", "ada")
        await note(tx, f"read {url} soon", settings=fetcher.settings)
        link = await find_link(tx, url, ACME)
    assert link is not None
    assert link.state == "queued", link.reason
    set_current(Running([ChildMember(TaskId(1), 1)], lambda *_: None))
    answer = await fetcher.fetch(FetchLink(link.id))
    async with db.transaction() as tx:
        if answer.write is not None:
            await answer.write(tx)
        return answer, await load_link(tx, link.id)


async def test_a_page_becomes_a_document_and_its_links_are_not_followed(
    db: Database, site: WebServer, processes: ProcessPool
) -> None:
    site.serve("/mill", ARTICLE, ETag='"7"')
    answer, link = await fetch(db, make_link_fetcher(db, site, processes), site.at("/mill", "a.org"))
    assert isinstance(answer, Done)
    assert (link.state, link.error) == ("indexed", None)
    async with db.transaction() as tx:
        row = await tx.one("SELECT * FROM document WHERE id = %(id)s", id=link.document)
        body = await tx.value(
            "SELECT convert_from(p.bytes, 'UTF8') FROM blob_piece p JOIN blob b ON b.id = p.blob JOIN document d"
            " ON d.hash = b.hash WHERE d.id = %(id)s",
            id=link.document,
        )
        assert len(await list_links(tx)) == 1, "depth 1: the links of the page are mentioned, not followed"
    assert row is not None
    assert row.urn.startswith("link::")
    assert row.given["title"] == "The mill & its wheel"
    assert row.given["metadata"]["url"] == link.url
    assert "[the next page](https://next.example/page)" in body
    assert "menu" not in body


async def test_a_page_that_has_not_changed_is_not_read_again(
    db: Database, site: WebServer, processes: ProcessPool
) -> None:
    site.serve("/mill", ARTICLE, ETag='"7"')
    fetcher = make_link_fetcher(db, site, processes)
    _, link = await fetch(db, fetcher, site.at("/mill", "a.org"))
    async with db.transaction() as tx:
        await tx.execute("UPDATE link SET state = 'queued'")
    site.serve("/mill", status=304)
    answer = await fetcher.fetch(FetchLink(link.id))
    assert site.seen[-1].headers["If-None-Match"] == '"7"'
    async with db.transaction() as tx:
        assert answer.write is not None
        await answer.write(tx)
        again = await load_link(tx, link.id)
    assert (again.state, again.document) == ("indexed", link.document)


async def test_a_pdf_goes_the_way_of_documents(db: Database, site: WebServer, processes: ProcessPool) -> None:
    site.serve("/report", b"%PDF-1.4 " + b"x" * 2_000_000, Content_Type="application/pdf")
    _, link = await fetch(db, make_link_fetcher(db, site, processes), site.at("/report", "a.org"))
    async with db.transaction() as tx:
        row = await tx.one("SELECT d.name, b.size FROM document d JOIN blob b USING (hash)")
    assert row is not None
    assert (row.name, row.size) == ("a.org-report.pdf", 2_000_009)
    assert link.state == "indexed"


@pytest.mark.parametrize(("status", "words"), [(404, "no such page"), (403, "we may not read it"), (410, "status 410")])
async def test_a_page_that_is_not_there_is_told_and_not_tried_again(
    db: Database, site: WebServer, processes: ProcessPool, status: int, words: str
) -> None:
    site.serve("/x", status=status)
    answer, link = await fetch(db, make_link_fetcher(db, site, processes), site.at("/x", "a.org"))
    assert isinstance(answer, Skip)
    assert link.state == "failed"
    assert words in (link.error or "")


@pytest.mark.parametrize(("status", "error"), [(500, Transient), (429, Overloaded)])
async def test_a_host_that_is_busy_is_asked_again(
    db: Database, site: WebServer, processes: ProcessPool, status: int, error: type[Exception]
) -> None:
    site.serve("/x", status=status)
    with pytest.raises(error):
        await fetch(db, make_link_fetcher(db, site, processes), site.at("/x", "a.org"))


async def test_an_empty_page_is_told(db: Database, site: WebServer, processes: ProcessPool) -> None:
    site.serve("/x", "<html><body></body></html>")
    _, link = await fetch(db, make_link_fetcher(db, site, processes), site.at("/x", "a.org"))
    assert (link.state, link.error) == ("failed", "There is no text on the page.")


async def test_a_link_whose_page_was_removed_waits_for_a_person_again(
    db: Database, site: WebServer, processes: ProcessPool
) -> None:
    site.serve("/x", ARTICLE, ETag='"7"')
    fetcher = make_link_fetcher(db, site, processes)
    _, link = await fetch(db, fetcher, site.at("/x", "a.org"))
    async with db.transaction() as tx:
        await remove_source(tx, ACME, name_urn(link.url))
        assert await count_waiting_links(tx) == 1
        await note(tx, f"again: {link.url}", "email::2", settings=fetcher.settings)
        waits = await load_link(tx, link.id)
        assert (waits.state, waits.reason, waits.document) == ("waiting", "Its page was removed.", None)
        allowed = await decide_one(tx, link.id, "allow", "ada")
        assert allowed.state == "queued"
    set_current(Running([ChildMember(TaskId(1), 1)], lambda *_: None))
    answer = await fetcher.fetch(FetchLink(link.id))
    async with db.transaction() as tx:
        assert answer.write is not None
        await answer.write(tx)
        assert (await load_link(tx, link.id)).document is not None
    assert "If-None-Match" not in site.seen[-1].headers


async def test_a_link_that_stands_nowhere_goes_with_its_page(
    db: Database, site: WebServer, processes: ProcessPool
) -> None:
    site.serve("/x", ARTICLE)
    fetcher = make_link_fetcher(db, site, processes)
    _, link = await fetch(db, fetcher, site.at("/x", "a.org"))
    async with db.transaction() as tx:
        await note(tx, "nothing", settings=fetcher.settings)
        await remove_source(tx, ACME, name_urn(link.url))
        assert await list_links(tx) == []


async def test_a_page_is_fetched_again_on_request_and_not_read_if_it_has_not_changed(
    db: Database, site: WebServer, processes: ProcessPool
) -> None:
    site.serve("/x", ARTICLE, ETag='"7"')
    fetcher = make_link_fetcher(db, site, processes)
    _, link = await fetch(db, fetcher, site.at("/x", "a.org"))
    for status, versions in ((304, 1), (304, 1), (200, 2)):
        site.serve("/x", ARTICLE.replace("flour", "meal") if status == 200 else b"", status=status)
        async with db.transaction() as tx:
            assert (await refresh_one(tx, link.id)).state == "queued"
            with pytest.raises(Refused, match="is queued"):
                await refresh_one(tx, link.id)
        answer = await fetcher.fetch(FetchLink(link.id))
        assert site.seen[-1].headers["If-None-Match"] == '"7"'
        async with db.transaction() as tx:
            assert answer.write is not None
            await answer.write(tx)
            assert (await load_link(tx, link.id)).state == "indexed"
            found = await tx.value("SELECT count(*) FROM document WHERE urn = %(urn)s", urn=name_urn(link.url))
        assert found == versions


async def test_a_redirect_within_a_site_is_followed(db: Database, site: WebServer, processes: ProcessPool) -> None:
    site.redirect("/x", site.at("/mill", "www.a.org"))
    site.serve("/mill", ARTICLE)
    _, link = await fetch(db, make_link_fetcher(db, site, processes), site.at("/x", "a.org"))
    assert link.state == "indexed"


@pytest.mark.parametrize("target", ["/page", "/login"])
async def test_a_redirect_to_a_place_that_nobody_allowed_is_not_followed(
    db: Database, site: WebServer, processes: ProcessPool, target: str
) -> None:
    site.redirect("/x", site.at(target, "b.org"))
    site.serve(target, ARTICLE)
    _, link = await fetch(db, make_link_fetcher(db, site, processes), site.at("/x", "a.org"))
    assert site.paths == ["/x"]
    assert link.state == "failed"
    async with db.transaction() as tx:
        other = await find_link(tx, site.at(target, "b.org"), ACME)
        assert other is not None
        places = await list_places(tx, other.id)
    assert other.state == ("waiting" if target == "/page" else "refused")
    assert [one.urn for one in places] == ["email::1"]
    assert "leads here" in places[0].context


async def test_a_redirect_by_a_wrapper_is_judged_by_the_place_that_would_be_called(
    db: Database, site: WebServer, processes: ProcessPool
) -> None:
    wrapped = site.at("/mill", "a.org")
    site.redirect("/x", site.at(f"/url?q={wrapped}", "www.google.com"))
    site.redirect("/url", wrapped)
    site.serve("/mill", ARTICLE)
    _, link = await fetch(db, make_link_fetcher(db, site, processes), site.at("/x", "a.org"))
    assert site.paths == ["/x"]
    assert link.state == "failed"
    assert "www.google.com" in (link.error or "")
    async with db.transaction() as tx:
        meant = await find_link(tx, wrapped, ACME)
    assert meant is not None
    assert meant.state == "queued"


async def test_a_redirect_that_tells_who_came_is_not_followed_as_it_is(
    db: Database, site: WebServer, processes: ProcessPool
) -> None:
    site.redirect("/x", site.at("/mill?mkt_tok=7&lang=en", "a.org"))
    site.serve("/mill", ARTICLE)
    _, link = await fetch(db, make_link_fetcher(db, site, processes), site.at("/x", "a.org"))
    assert (site.paths, link.state) == (["/x"], "failed")
    async with db.transaction() as tx:
        meant = await find_link(tx, site.at("/mill?lang=en", "a.org"), ACME)
    assert meant is not None
    assert meant.state == "queued"


async def test_a_redirect_inside_is_refused(db: Database, site: WebServer, processes: ProcessPool) -> None:
    site.redirect("/x", "http://169.254.169.254/latest")
    _, link = await fetch(db, make_link_fetcher(db, site, processes), site.at("/x", "a.org"))
    assert (link.state, "metadata" in (link.error or "")) == ("refused", True)


async def test_a_link_that_somebody_denied_meanwhile_is_not_fetched(
    db: Database, site: WebServer, processes: ProcessPool
) -> None:
    fetcher = make_link_fetcher(db, site, processes)
    async with db.transaction() as tx:
        await set_rule(tx, ACME, "allow", "a.org", "ada")
        await note(tx, site.at("/x", "a.org"), settings=fetcher.settings)
        link = await only(tx)
        await decide_one(tx, link.id, "deny", "bob")
    assert isinstance(await fetcher.fetch(FetchLink(link.id)), Skip)
    assert site.paths == []


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 50_000 + b"deep",
        b"<html><head><meta charset='nonsense'></head><p>\xff\xfe bytes " + b"and words " * 50,
        ("<p>ä ö ü words " + "and more words " * 30).encode("latin-1"),
        b"<script>" + b"x" * 100_000,
        bytes(range(256)) * 50,
        b"<!--" * 30_000,
        b"<table>" * 3_000 + b"<tr><td>cell",
    ],
)
async def test_a_hostile_page_does_no_harm(db: Database, site: WebServer, processes: ProcessPool, body: bytes) -> None:
    site.serve("/x", body)
    _, link = await fetch(db, make_link_fetcher(db, site, processes), site.at("/x", "a.org"))
    assert link.state in ("indexed", "failed")
