"""Files of a provider: our key stays with its server, and no address leads into a network of our own."""

from collections.abc import AsyncIterator

import pytest

from gristmill.errors import Permanent, Unsafe
from gristmill.sources.http import find_own, open_provider
from web_server import Names, WebServer, make_fetcher, run_web_server

KEY = {"Authorization": "Bearer good"}


@pytest.fixture
async def site() -> AsyncIterator[WebServer]:
    async with run_web_server() as running:
        yield running


@pytest.fixture
async def other() -> AsyncIterator[WebServer]:
    async with run_web_server() as running:
        yield running


async def test_a_file_that_is_kept_elsewhere_comes_without_our_key(site: WebServer, other: WebServer) -> None:
    site.redirect("/file", other.at("/bytes", "files.example.org"))
    other.serve("/bytes", b"the file", content_type="application/x-odd")
    abroad = make_fetcher(names=Names({"files.example.org": ["127.0.0.1"]}), ports=(other.port,))
    async with open_provider(site.at(""), KEY, abroad=abroad) as provider:
        assert await provider.download("/file") == b"the file"
        assert await provider.download(other.at("/gone", "files.example.org")) is None
    assert "Authorization" in site.seen[0].headers
    assert "Authorization" not in other.seen[0].headers


@pytest.mark.parametrize("first", [False, True])
async def test_a_name_that_leads_inside_is_refused_though_it_looks_harmless(
    site: WebServer, other: WebServer, first: bool
) -> None:
    other.serve("/bytes", b"a secret of our own network")
    inside = other.at("/bytes", "harmless.example.org")
    site.redirect("/file", inside)
    names = Names({"harmless.example.org": ["127.0.0.1"]})
    abroad = make_fetcher(names=names, allowed_hosts=(), ports=(other.port,))
    async with open_provider(site.at(""), KEY, abroad=abroad) as provider:
        with pytest.raises(Unsafe, match=r"harmless\.example\.org \(127\.0\.0\.1\)"):
            await provider.download(inside if first else "/file")
    assert other.seen == []


async def test_an_address_of_our_own_network_that_an_issue_names_is_refused(site: WebServer, other: WebServer) -> None:
    other.serve("/bytes", b"a secret of our own network")
    async with open_provider(site.at(""), KEY) as provider:
        with pytest.raises(Unsafe):
            await provider.download(other.at("/bytes"))
    assert other.seen == []


async def test_whoever_has_left_does_not_come_back_with_our_key(site: WebServer, other: WebServer) -> None:
    """A stranger could otherwise choose what our key opens."""
    site.redirect("/file", other.at("/away", "files.example.org"))
    site.serve("/private", b"what only the key may see")
    other.redirect("/away", site.at("/private"))
    abroad = make_fetcher(names=Names({"files.example.org": ["127.0.0.1"]}), ports=(other.port, site.port))
    async with open_provider(site.at(""), KEY, abroad=abroad) as provider:
        await provider.download("/file")
    assert [request.headers.get("Authorization") for request in site.seen] == ["Bearer good", None]


async def test_a_circle_of_redirects_ends(site: WebServer) -> None:
    site.redirect("/file", "/file")
    async with open_provider(site.at(""), KEY) as provider:
        with pytest.raises(Permanent, match="from one address to the next"):
            await provider.download("/file")


@pytest.mark.parametrize(
    ("url", "base", "own"),
    [
        ("https://jira.example.org/a", "https://jira.example.org/x", "https://jira.example.org/a"),
        ("https://JIRA.example.org:443/a", "https://jira.example.org", "https://JIRA.example.org:443/a"),
        ("http://jira.example.org/a?b=c", "https://jira.example.org", "https://jira.example.org/a?b=c"),
        ("http://127.0.0.1:8080/a", "http://127.0.0.1:8080/x", "http://127.0.0.1:8080/a"),
        ("http://jira.example.org:8080/a", "https://jira.example.org", None),
        ("http://jira.example.org/a", "https://jira.example.org:8443", None),
        ("https://jira.example.org:8443/a", "https://jira.example.org", None),
        ("https://jira.example.org.evil.example/a", "https://jira.example.org", None),
        ("https://jira.example.org@evil.example/a", "https://jira.example.org", None),
        ("https://anna:b@jira.example.org/a", "https://jira.example.org", None),
        ("https://jira.example.org:x/a", "https://jira.example.org", None),
        ("ftp://jira.example.org/a", "https://jira.example.org", None),
        ("", "https://jira.example.org", None),
    ],
)
def test_the_key_goes_to_its_own_server_and_never_in_clear(url: str, base: str, own: str | None) -> None:
    assert find_own(url, base) == own
