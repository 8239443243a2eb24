"""The fetcher goes only where it may, once per name, slowly, and stops at its limits."""

import asyncio
import gzip
import socket
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from aiohttp import web

from gristmill.db import Database
from gristmill.errors import NoTurn, Overloaded, Permanent, Transient, Unsafe
from gristmill.queue import Limit, Limiters
from gristmill.settings import Delay, FetchSettings
from gristmill.sources import Fetcher, NotThere
from gristmill.sources.fetch.answers import read_retry_after
from gristmill.sources.fetch.location import read_location
from gristmill.sources.fetch.resolving import look_up, pin_connector
from web_server import Names, Turns, WebServer, make_fetcher, run_web_server


@pytest.fixture
async def site() -> AsyncIterator[WebServer]:
    async with run_web_server() as running:
        yield running


@asynccontextmanager
async def raw_server(*pieces: bytes, pause: float = 0.0) -> AsyncIterator[int]:
    """A server that sends these bytes to whoever connects, whatever was asked; its port."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    running = await asyncio.start_server(speak, "127.0.0.1", 0)
    async with running:
        yield running.sockets[0].getsockname()[1]


# --- pages


async def test_a_page_comes_with_its_type_and_its_marks(site: WebServer) -> None:
    site.serve("/a", "<p>ä</p>", Content_Type="text/html; charset=UTF-8", ETag='"7"', Last_Modified="yesterday")
    found = await make_fetcher().get(site.at("/a"))
    assert (found.body, found.content_type, found.charset) == ("<p>ä</p>".encode(), "text/html", "utf-8")
    assert (found.etag, found.last_modified, found.unchanged) == ('"7"', "yesterday", False)
    assert site.seen[0].headers["User-Agent"] == "gristmill/0.1"
    assert "Cookie" not in site.seen[0].headers


async def test_an_unchanged_page_is_not_sent_again(site: WebServer) -> None:
    site.serve("/a", status=304, ETag='"7"')
    found = await make_fetcher().get(site.at("/a"), etag='"7"', last_modified="yesterday")
    assert found.unchanged
    assert found.body == b""
    assert site.seen[0].headers["If-None-Match"] == '"7"'
    assert site.seen[0].headers["If-Modified-Since"] == "yesterday"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        *((status, NotThere) for status in (401, 403, 404, 410, 451)),
        *((status, Transient) for status in (408, 425, 500, 502)),
        *((status, Permanent) for status in (300, 305)),
    ],
)
async def test_a_status_says_whether_to_come_back(site: WebServer, status: int, error: type[Exception]) -> None:
    site.serve("/a", status=status)
    with pytest.raises(error, match=f"status {status}"):
        await make_fetcher().get(site.at("/a?token=secret"))


@pytest.mark.parametrize(("status", "header", "seconds"), [(429, "7", 7), (503, "120", 120), (429, None, 60)])
async def test_a_busy_host_says_when_to_come_back(
    site: WebServer, status: int, header: str | None, seconds: int
) -> None:
    site.serve("/a", status=status, **({"Retry_After": header} if header else {}))
    with pytest.raises(Overloaded) as busy:
        await make_fetcher().get(site.at("/a"))
    assert busy.value.retry_after == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("value", "date", "seconds"),
    [
        ("Tue, 17 Nov 2026 10:00:30 GMT", "Tue, 17 Nov 2026 10:00:00 GMT", 30),
        ("Tue, 17 Nov 2026 09:00:00 GMT", "Tue, 17 Nov 2026 10:00:00 GMT", 1),
        ("Tue, 17 Nov 2026 10:00:30 GMT", None, 60),
        ("soon", None, 60),
        ("-5", None, 60),
        ("0", None, 1),
        ("999999999", None, 86400),
        ("9" * 400, None, 60),
    ],
)
def test_a_time_to_come_back_is_read_carefully(value: str, date: str | None, seconds: int) -> None:
    assert read_retry_after(value, date) == timedelta(seconds=seconds)


async def test_no_error_shows_the_query_of_an_address(site: WebServer) -> None:
    with pytest.raises(NotThere) as missing:
        await make_fetcher().get(site.at("/a?token=secret"))
    assert "secret" not in str(missing.value)
    assert site.seen[0].query_string == "token=secret"


async def test_a_type_that_was_not_asked_for_is_not_read(site: WebServer) -> None:
    site.serve("/a", "x", Content_Type="video/mp4")
    with pytest.raises(Permanent, match="video/mp4"):
        await make_fetcher().get(site.at("/a"))
    assert (await make_fetcher().get(site.at("/a"), types=("video/*",))).content_type == "video/mp4"


# --- limits


async def test_an_answer_that_is_too_large_is_cut_off_as_it_comes(site: WebServer) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        answer = web.StreamResponse(headers={"Content-Type": "text/html"})
        await answer.prepare(request)
        while True:
            await answer.write(b"x" * 65536)
            sent += 65536

    site.pages["/a"] = endless
    with pytest.raises(Permanent, match="more than 100000 bytes"):
        await make_fetcher(max_bytes=100_000).get(site.at("/a"))
    assert sent < 50_000_000


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, lambda data: zlib.compress(data, wbits=-15)])
async def test_a_bomb_stops_at_the_limit_of_what_it_unpacks_to(site: WebServer, pack: object) -> None:
    assert callable(pack)
    site.serve("/bomb", pack(bytes(50_000_000)), Content_Encoding="deflate")
    site.serve("/good", pack(b"<p>good</p>" * 1000), Content_Encoding="deflate")
    with pytest.raises(Permanent, match="unpacks to more than 1000000 bytes"):
        await make_fetcher(max_unpacked=1_000_000).get(site.at("/bomb"))
    assert (await make_fetcher().get(site.at("/good"))).body == b"<p>good</p>" * 1000


async def test_a_gzip_of_many_members_is_one_page_and_still_limited(site: WebServer) -> None:
    site.serve("/a", gzip.compress(b"a") + gzip.compress(b"b"), Content_Encoding="gzip")
    site.serve("/b", gzip.compress(bytes(900_000)) * 3, Content_Encoding="gzip")
    assert (await make_fetcher().get(site.at("/a"))).body == b"ab"
    with pytest.raises(Permanent, match="unpacks"):
        await make_fetcher(max_unpacked=1_000_000).get(site.at("/b"))


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress"])
async def test_an_encoding_that_nobody_asked_for_is_refused(site: WebServer, encoding: str) -> None:
    site.serve("/a", gzip.compress(b"a"), Content_Encoding=encoding)
    with pytest.raises(Permanent, match="did not ask for"):
        await make_fetcher().get(site.at("/a"))


@pytest.mark.parametrize(
    "body",
    [gzip.compress(b"x" * 5000)[:-9], b"no gzip at all", gzip.compress(b"x") + b"rubbish"],
    ids=["cut off", "none at all", "with a tail"],  # the bytes themselves hold the time at which they were packed
)
async def test_a_damaged_answer_is_no_page(site: WebServer, body: bytes) -> None:
    site.serve("/a", body, Content_Encoding="gzip")
    with pytest.raises(Transient, match="compressed answer"):
        await make_fetcher().get(site.at("/a"))


async def test_a_body_that_ends_too_early_is_no_page() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100\r\n\r\n"
    async with raw_server(head, b"only this") as port:
        with pytest.raises(Transient, match="did not answer"):
            await make_fetcher().get(f"http://127.0.0.1:{port}/")


async def test_a_host_that_drips_is_left_after_the_time_limit() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    async with raw_server(head, *[b"x"] * 100, pause=0.05) as port:
        with pytest.raises(Transient, match=r"took longer than 0.2 s"):
            await make_fetcher(timeout=timedelta(seconds=0.2)).get(f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize(
    "head",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(10_000)) + b"\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nzz\r\n",
        b"",
    ],
)
async def test_a_host_that_speaks_no_http_is_an_error_of_ours(head: bytes) -> None:
    async with raw_server(head) as port:
        with pytest.raises((Transient, Permanent)):
            await make_fetcher().get(f"http://127.0.0.1:{port}/")


async def test_a_port_where_nobody_listens_is_tried_again_later() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    with pytest.raises(Transient, match="did not answer"):
        await make_fetcher().get(f"http://127.0.0.1:{port}/")


# --- redirects


async def test_redirects_are_followed_and_told(site: WebServer) -> None:
    site.redirect("/a", "/b")
    site.redirect("/b", site.at("/c?x=1"), 308)
    site.serve("/c", "here")
    found = await make_fetcher().get(site.at("/a"))
    assert found.body == b"here"
    assert found.url == site.at("/c?x=1")
    assert found.redirects == (site.at("/a"), site.at("/b"))


TARGETS = """
http://169.254.169.254/latest/meta-data/ http://127.1/ http://[::1]/ http://0x7f000001/ http://10.0.0.1/
http://localhost/ //192.168.0.1/ http://user@example.org/ file:///etc/passwd gopher://127.0.0.1:6379/_x
http://example.org:22/ http://[::ffff:169.254.169.254]/ http://①②⑦.⓪.⓪.①/ http:\\\\127.0.0.1/ javascript:x
"""


@pytest.mark.parametrize("target", TARGETS.split())
async def test_a_redirect_is_checked_like_a_first_address(site: WebServer, target: str) -> None:
    """The page itself may be fetched, because it is allowed by its port; the place it names is not."""
    site.redirect("/a", target)
    fetcher = make_fetcher(allowed_hosts=(f"127.0.0.1:{site.port}",))
    with pytest.raises(Unsafe):
        await fetcher.get(site.at("/a"))
    assert site.paths == ["/a"]


async def test_a_redirect_to_a_name_that_leads_inside_is_refused(site: WebServer) -> None:
    site.redirect("/a", f"http://harmless.example.org:{site.port}/secret")
    names = Names({"harmless.example.org": ["127.0.0.1"]})
    fetcher = make_fetcher(names=names, allowed_hosts=(f"127.0.0.1:{site.port}",), ports=(site.port,))
    with pytest.raises(Unsafe, match=r"harmless.example.org \(127.0.0.1\) is this machine"):
        await Fetcher(FetchSettings(ports=(site.port,)), take=Turns().take, look_up=names.look_up).get(
            f"http://harmless.example.org:{site.port}/secret"
        )
    with pytest.raises(Unsafe, match=r"harmless.example.org"):
        await fetcher.get(site.at("/a"))
    assert site.paths == ["/a"]


async def test_too_many_redirects_and_circles_end(site: WebServer) -> None:
    site.redirect("/circle", "/circle")
    for n in range(9):
        site.redirect(f"/{n}", f"/{n + 1}")
    with pytest.raises(Permanent, match="in a circle"):
        await make_fetcher().get(site.at("/circle"))
    with pytest.raises(Permanent, match="more than 5 times"):
        await make_fetcher().get(site.at("/0"))
    assert site.paths[-1] == "/5"


async def test_another_host_gets_no_secret_of_the_first(site: WebServer) -> None:
    site.redirect("/a", site.at("/b", "b.example.org"))
    site.serve("/b", "here")
    names = Names({"a.example.org": ["127.0.0.1"], "b.example.org": ["127.0.0.1"]})
    fetcher = make_fetcher(names=names, ports=(site.port,))
    await fetcher.get(site.at("/a", "a.example.org"), etag='"7"', headers={"Authorization": "Bearer secret"})
    assert "Authorization" in site.seen[0].headers
    assert not {"Authorization", "If-None-Match"} & set(site.seen[1].headers)


# --- names


async def test_a_name_is_looked_up_once_and_its_checked_address_is_called(site: WebServer) -> None:
    """DNS rebinding: whatever the name means a moment later, the connection goes where the check has been."""
    site.serve("/a", "here")
    answers = iter((["127.0.0.1"], ["169.254.169.254"]))

    async def rebind(host: str, port: int) -> Sequence[str]:
        return next(answers)

    fetcher = Fetcher(
        FetchSettings(allowed_hosts=("127.0.0.0/8",), ports=(site.port,), robots=False),
        take=Turns().take,
        look_up=rebind,
    )
    assert (await fetcher.get(site.at("/a", "rebind.example.org"))).body == b"here"
    with pytest.raises(Unsafe, match=r"169.254.169.254"):
        await fetcher.get(site.at("/a", "rebind.example.org"))
    assert site.seen[0].host == f"rebind.example.org:{site.port}"


@pytest.mark.parametrize("inner", ["127.0.0.1", "10.0.0.1", "::1", "fe80::1%2", "::ffff:10.0.0.1", "64:ff9b::a00:1"])
async def test_one_inner_address_among_public_ones_is_enough_to_refuse(inner: str) -> None:
    names = Names({"mixed.example.org": ["8.8.8.8", inner]})
    with pytest.raises(Unsafe):
        await make_fetcher(names=names, allowed_hosts=()).check("http://mixed.example.org/")


async def test_an_allowed_name_does_not_open_metadata() -> None:
    names = Names({"wiki.example.org": ["169.254.169.254"]})
    with pytest.raises(Unsafe, match="metadata"):
        await make_fetcher(names=names, allowed_hosts=("wiki.example.org",)).check("http://wiki.example.org/")


async def test_an_allowed_name_may_have_an_inner_address() -> None:
    names = Names({"wiki.example.org": ["10.1.2.3"]})
    await make_fetcher(names=names, allowed_hosts=("wiki.example.org",)).check("http://wiki.example.org/")


async def test_a_socket_opens_to_the_checked_address_alone(site: WebServer) -> None:
    """The last door, in case the library looks a name up in a way of its own."""
    location = read_location(site.at("/"))
    connector = pin_connector(location, ["8.8.8.8"])
    try:
        with pytest.raises(Unsafe, match="another address"):
            connector._socket_factory((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", site.port)))  # type: ignore[misc]
    finally:
        await connector.close()


async def test_a_name_that_does_not_exist_is_said_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object, **__: object) -> object:
        raise socket.gaierror(codes.pop(0), "no")

    codes = [socket.EAI_NONAME, socket.EAI_AGAIN]
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", fail)
    with pytest.raises(Permanent, match=r"There is no host nowhere.example"):
        await look_up("nowhere.example", 80)
    with pytest.raises(Transient, match="could not be looked up"):
        await look_up("nowhere.example", 80)


# --- manners


async def test_a_page_that_robots_txt_forbids_is_not_fetched(site: WebServer) -> None:
    site.serve("/robots.txt", "User-agent: gristmill\nDisallow: /private\nCrawl-delay: 9", Content_Type="text/plain")
    site.serve("/open", "x")
    turns = Turns()
    fetcher = make_fetcher(turns, robots=True)
    await fetcher.get(site.at("/open"))
    with pytest.raises(Permanent, match=r"robots\.txt"):
        await fetcher.get(site.at("/private/x"))
    assert site.paths == ["/robots.txt", "/open"], "it is asked for once"
    asked, slowly = Limit(gap=(timedelta(seconds=3), timedelta(seconds=5))), Limit(gap=(timedelta(seconds=9),) * 2)
    assert turns.taken == [("web:127.0.0.1", asked), ("web:127.0.0.1", slowly)], "robots.txt is a visit, too"


async def test_a_redirect_to_a_forbidden_page_is_not_followed(site: WebServer) -> None:
    site.serve("/robots.txt", "User-agent: *\nDisallow: /private")
    site.redirect("/open", "/private")
    with pytest.raises(Permanent, match=r"robots\.txt"):
        await make_fetcher(robots=True).get(site.at("/open"))


@pytest.mark.parametrize("status", [404, 401, 403, 410])
async def test_a_host_without_rules_allows_everything(site: WebServer, status: int) -> None:
    site.serve("/robots.txt", status=status)
    site.serve("/a", "x")
    assert (await make_fetcher(robots=True).get(site.at("/a"))).body == b"x"


@pytest.mark.parametrize(("status", "error"), [(500, Transient), (503, Overloaded)])
async def test_while_the_rules_cannot_be_asked_for_nothing_is_fetched(
    site: WebServer, status: int, error: type[Exception]
) -> None:
    site.serve("/robots.txt", status=status)
    site.serve("/a", "x")
    fetcher = make_fetcher(robots=True)
    with pytest.raises(error):
        await fetcher.get(site.at("/a"))
    site.serve("/robots.txt", "")
    assert (await fetcher.get(site.at("/a"))).body == b"x"


async def test_robots_txt_may_not_redirect_us_inside(site: WebServer) -> None:
    site.redirect("/robots.txt", "http://169.254.169.254/")
    site.serve("/a", "x")
    with pytest.raises(Unsafe):
        await make_fetcher(robots=True).get(site.at("/a"))


async def test_each_domain_has_its_own_delay(site: WebServer) -> None:
    site.serve("/a", "x")
    names = Names({name: ["127.0.0.1"] for name in ("www.hzzo.hr", "eur-lex.europa.eu", "www.example.org")})
    slow = {"hzzo.hr": Delay(min=timedelta(seconds=5), max=timedelta(seconds=8))}
    turns = Turns()
    fetcher = make_fetcher(turns, names, ports=(site.port,), delays=slow)
    for name in names.known:
        await fetcher.get(site.at("/a", name))
    assert [(name, limit.gap[0].seconds, limit.gap[1].seconds) for name, limit in turns.taken if limit] == [
        ("web:hzzo.hr", 5, 8),
        ("web:eur-lex.europa.eu", 3, 5),
        ("web:example.org", 3, 5),
    ]


async def test_a_redirect_within_a_host_is_one_visit_and_another_host_is_another(site: WebServer) -> None:
    names = Names({name: ["127.0.0.1"] for name in ("a.example.org", "b.example.org")})
    site.redirect("/a", "/b")
    site.redirect("/b", site.at("/c", "b.example.org"))
    site.serve("/c", "x")
    turns = Turns()
    await make_fetcher(turns, names, ports=(site.port,)).get(site.at("/a", "a.example.org"))
    assert [name for name, _ in turns.taken] == ["web:a.example.org", "web:b.example.org"]


async def test_the_delay_is_shared_through_the_database(site: WebServer, db: Database) -> None:
    """Two workers, one domain: the second is told when to come back, and no attempt is counted."""
    site.serve("/a", "x")
    far = {"127.0.0.1": Delay(min=timedelta(minutes=5), max=timedelta(minutes=5))}
    settings = FetchSettings(allowed_hosts=("127.0.0.0/8",), robots=False, delays=far)
    first, second = (Fetcher(settings, take=Limiters(db).take) for _ in range(2))
    await first.get(site.at("/a"))
    with pytest.raises(NoTurn) as later:
        await second.get(site.at("/a"))
    assert timedelta(minutes=4) < later.value.retry_after <= timedelta(minutes=5)
    assert site.paths == ["/a"]


# --- posts


async def test_a_post_carries_its_key_and_needs_no_turn(site: WebServer) -> None:
    site.serve("/hook", "ok")
    turns = Turns()
    posted = await make_fetcher(turns).post(site.at("/hook"), {"text": "ä"}, key="gristmill-7")
    assert (posted.status, posted.body) == (200, b"ok")
    assert site.bodies == ['{"text":"ä"}'.encode()]
    assert site.seen[0].headers["Idempotency-Key"] == "gristmill-7"
    assert turns.taken == []


async def test_a_post_follows_no_redirect(site: WebServer) -> None:
    site.redirect("/hook", "/elsewhere", 307)
    with pytest.raises(Permanent, match="redirects what we post"):
        await make_fetcher().post(site.at("/hook"), {}, key="k")
    assert site.paths == ["/hook"]


@pytest.mark.parametrize(("status", "error"), [(429, Overloaded), (500, Transient), (404, Permanent), (400, Permanent)])
async def test_a_post_that_fails_names_the_host_alone(site: WebServer, status: int, error: type[Exception]) -> None:
    site.serve("/services/T0/secret", status=status)
    with pytest.raises(error) as failed:
        await make_fetcher().post(site.at("/services/T0/secret?key=hush"), {}, key="k")
    assert "secret" not in str(failed.value)
    assert "hush" not in str(failed.value)


async def test_a_post_goes_to_no_machine_of_our_own() -> None:
    with pytest.raises(Unsafe):
        await Fetcher(FetchSettings()).post("http://127.0.0.1/hook", {}, key="k")
