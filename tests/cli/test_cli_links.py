"""`gristmill link`: rules, decisions and reasons, as people and programs read them."""

import asyncio
import json

import pytest

from gristmill.db import Database
from gristmill.scopes import Scope
from gristmill.sources import LinkedDocument, extract_links, list_links, note_links


@pytest.fixture
def links(url: str) -> dict[str, int]:
    async def note() -> dict[str, int]:
        text = "read https://a.org/x, or leave: https://a.org/unsubscribe"
        async with Database(url) as db, db.transaction() as tx:
            await note_links(tx, [LinkedDocument("email::1", Scope("acme"), extract_links(text))])
            return {one.url: one.id for one in await list_links(tx)}

    return asyncio.run(note())


def test_links_that_wait_are_listed_and_decided(cli, links):
    said = cli("link", "ls", "--state", "waiting")
    assert "Nobody has decided about a.org yet." in said.out
    assert "unsubscribe" not in said.out
    one = links["https://a.org/x"]
    assert cli("link", "allow", str(one)).out.strip() == f"Link {one} will be fetched: https://a.org/x"
    assert cli("link", "deny", str(one)).out.strip() == f"Link {one} is never fetched: https://a.org/x"
    refused = cli("link", "allow", str(links["https://a.org/unsubscribe"]))
    assert refused.code == 1
    assert "is never fetched. It ends a subscription" in refused.err


def test_only_a_page_that_is_indexed_is_fetched_again(cli, links, url):
    async def finish(id_: int) -> None:
        async with Database(url) as db, db.transaction() as tx:
            await tx.execute("UPDATE link SET state = 'indexed' WHERE id = %(id)s", id=id_)

    one = links["https://a.org/x"]
    assert "is waiting: only a link that is indexed" in cli("link", "refresh", str(one)).err
    asyncio.run(finish(one))
    assert cli("link", "refresh", str(one)).out.strip() == f"Link {one} will be fetched again: https://a.org/x"


def test_a_rule_is_made_and_listed(cli, url):
    assert "Links of a.org/docs are fetched (acme)." in cli("link", "allow", "a.org/docs", "--client", "acme").out
    assert "Links of ads.a.org are never fetched (GLOBAL)." in cli("link", "deny", "ads.a.org").out
    rules = json.loads(cli("link", "ls", "--rules", "--json").out)
    assert [(one["effect"], one["pattern"]) for one in rules] == [("deny", "ads.a.org"), ("allow", "a.org/docs")]
    assert cli("link", "allow", "org").code == 1


def test_one_can_ask_why(cli, links):
    said = cli("link", "why", "https://a.org/x#part", "--client", "acme")
    assert "Nobody has decided about a.org yet." in said.out
    assert "email::1" in said.out
    told = json.loads(cli("link", "why", "https://b.org/accept", "--json").out)
    assert (told["verdict"], told["state"]) == ("blocked", None)
    assert cli("link", "why", "http://127.1/").code == 2
    assert cli("link", "why", "999").err.strip() == "There is no link 999."
