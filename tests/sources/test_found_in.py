"""Where links were found: an edge in the graph for each place, which goes with its document; lists that stay cheap."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fake_server import serve
from farm import Farm, a_farm, a_mail
from jira_server import USER, JiraServer
from worlds import GitWorld

from gristmill.db import Database, Tx
from gristmill.models import TextPassage
from gristmill.models.language.extraction import extract_passages
from gristmill.scopes import Scope
from gristmill.sources.items import list_items
from gristmill.sources.link import count_waiting_links, decide_one, list_links

PLAN = "https://example.org/plan"
PLACES = "SELECT p.urn FROM link l JOIN link_place p ON p.link = l.id WHERE l.url = %(url)s ORDER BY p.urn"
READ = """
SELECT sum(pg_stat_get_xact_tuples_returned(oid) + pg_stat_get_xact_tuples_fetched(oid))::int FROM pg_class
 WHERE relname IN ('source_item', 'link', 'source_item_by_source', 'source_item_by_state', 'link_by_scope')
"""
LINKS = "SELECT url, state, label, context FROM link ORDER BY url"


@pytest.fixture
async def farm(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Farm]:
    monkeypatch.setenv("PROVIDER_TOKEN", "good")
    async with a_farm(db, tmp_path) as opened:
        yield opened


@pytest.fixture
def box(tmp_path: Path) -> Path:
    folder = tmp_path / "box"
    folder.mkdir()
    return folder


async def edges(farm: Farm) -> set[str]:
    """What the graph gets to know of all documents, as the phase graph asks for it."""
    rows = await farm.rows("SELECT coalesce(type, given ->> 'type') AS type, title, given, meta FROM document")
    found: set[str] = set()
    for row in rows:
        meta: dict[str, Any] = {**row.meta, **row.given.get("metadata", {})}
        context = {"type": row.type, "title": row.given.get("title") or row.title, "meta": meta}
        (graph,) = extract_passages([TextPassage("Hello.", context=context)])
        found |= {f"{one.source} {one.type} {one.target}" for one in graph.relations if one.type == "FOUND_IN"}
    return found


async def test_an_address_has_an_edge_to_each_mail_issue_commit_page_and_meeting_that_names_it(
    farm: Farm, box: Path, tmp_path: Path
) -> None:
    (box / "1.eml").write_bytes(a_mail(1, f"See {PLAN} and tell me."))
    (box / "page.md").write_text(f"# Mill\n\nAs [the plan]({PLAN}) says.\n")
    (box / "talk.txt").write_text(f"[00:00:01] Anna: I wrote it down at {PLAN} for you.\n")
    git = GitWorld(tmp_path / "world")
    (git.folder / "a.txt").write_text("a\n")
    git.git("add", "--all")
    git.git("commit", "--quiet", "--message", f"Follow {PLAN}")
    commit = git.git("rev-parse", "HEAD")
    for kind in ("eml", "markdown", "transcripts"):
        await farm.add(kind, name=kind, path=str(box))
    await farm.add("git", name="git", **git.options)
    async with serve(JiraServer()) as server:
        server.put("one", f"Compare {PLAN} with this.")
        await farm.add("jira", name="jira", url=server.url, user=USER, token="env:PROVIDER_TOKEN")
        await farm.work()
    places = [row.urn for row in await farm.rows(PLACES, url=PLAN)]
    assert places == sorted(
        [
            "email::1@acme.test",
            "wiki::markdown/page.md",
            "meeting::transcripts/talk.txt",
            f"commit::{commit}::mill",
            "jira::MILL-1",
        ]
    )
    found = await edges(farm)
    url = f"url::{PLAN}"
    assert {f"{url} FOUND_IN commit::{commit}::mill", f"{url} FOUND_IN id::MILL-1"} <= found
    assert {one.partition("::")[0] for one in (edge.rpartition(" ")[2] for edge in found)} == {
        *("commit", "id", "email", "wiki", "meeting")
    }
    (link,) = await farm.rows("SELECT count(*)::int AS n FROM link WHERE url = %(url)s", url=PLAN)
    assert link.n == 1


async def test_a_place_goes_with_its_document_and_the_link_with_its_last_place(farm: Farm, box: Path) -> None:
    (box / "1.eml").write_bytes(a_mail(1, f"The secret words before {PLAN} and behind."))
    (box / "2.eml").write_bytes(a_mail(2, f"Again {PLAN} here."))
    source = await farm.add("eml", path=str(box))
    await farm.work()
    assert [row.urn for row in await farm.rows(PLACES, url=PLAN)] == ["email::1@acme.test", "email::2@acme.test"]
    (box / "1.eml").unlink()
    await farm.compare(source)
    assert [row.urn for row in await farm.rows(PLACES, url=PLAN)] == ["email::2@acme.test"]
    assert [row.url for row in await farm.rows(LINKS)] == [PLAN]
    (box / "2.eml").unlink()
    await farm.compare(source, agreed=True)
    assert await farm.rows(LINKS) == []


async def test_a_newer_version_takes_the_places_of_the_links_that_it_lost_along(farm: Farm, box: Path) -> None:
    (box / "page.md").write_text(f"See {PLAN} and https://example.org/other too.\n")
    source = await farm.add("markdown", path=str(box))
    await farm.work()
    (box / "page.md").write_text("See https://example.org/other now.\n")
    await farm.poll(source)
    assert [row.url for row in await farm.rows(LINKS)] == ["https://example.org/other"]


async def test_what_a_person_decided_stays_without_the_words_of_a_document_that_is_gone(farm: Farm, box: Path) -> None:
    (box / "1.eml").write_bytes(a_mail(1, f"The secret words before {PLAN} and behind."))
    source = await farm.add("eml", path=str(box))
    await farm.work()
    async with farm.db.transaction() as tx:
        (link,) = await list_links(tx)
        await decide_one(tx, link.id, "deny", "Anna")
    (box / "1.eml").unlink()
    await farm.compare(source, agreed=True)
    (kept,) = await farm.rows(LINKS)
    assert (kept.state, kept.label, kept.context) == ("refused", "", "")


async def test_a_list_reads_what_it_shows_however_much_others_have(farm: Farm, box: Path) -> None:
    own = await farm.add("eml", Scope("small"), path=str(box))
    other = await farm.add("eml", Scope("large"), path=str(box))
    for source, n in ((other, 20_000), (own, 5), (other, 20_000)):
        await farm.rows(
            "INSERT INTO source_item (source, scope, external, hash, state, urn, error) SELECT %(source)s, %(scope)s,"
            " md5(random()::text), '', CASE WHEN n %% 5 = 0 THEN 'SET_ASIDE' ELSE 'INDEXED' END, 'x', "
            " CASE WHEN n %% 5 = 0 THEN 'Bad.' END FROM generate_series(1, %(n)s) n RETURNING 1",
            source=source.id,
            scope=source.scope,
            n=n,
        )
        await farm.rows(
            "INSERT INTO link (scope, hash, url, host, verdict, reason, state) SELECT %(scope)s,"
            " sha256(random()::text::bytea), 'https://a.org/' || n, 'a.org', 'uncertain', 'It waits.', 'waiting'"
            " FROM generate_series(1, %(n)s) n RETURNING 1",
            scope=source.scope,
            n=n,
        )
    async with farm.db.transaction() as tx:
        await tx.execute("ANALYZE source_item")
        await tx.execute("ANALYZE link")
    for state in (None, "INDEXED", "SET_ASIDE"):
        assert await count_read(farm, partial(list_items, source=own.id, state=state, limit=50)) < 200
    assert await count_read(farm, partial(list_links, states=["waiting"], limit=50)) < 1_000
    assert await count_read(farm, count_waiting_links) <= 3_000  # counting stops at a thousand


async def count_read(farm: Farm, ask: Callable[[Tx], Awaitable[Any]]) -> int:
    """Rows that a question reads, by the statistics of its own transaction: nobody else's are counted."""
    async with farm.db.transaction() as tx:
        before: int = await tx.value(READ)
        await ask(tx)
        return await tx.value(READ) - before
