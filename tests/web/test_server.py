"""The server: where it listens, whom it lets in, and how it ends."""

import asyncio
import logging
import socket
from contextlib import suppress

import httpx
import pytest
from serving import OPERATOR

from gristmill.app import ROOMS
from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.knowledge import Finder
from gristmill.settings import Settings
from gristmill.web import Serving, add_key, open_web
from gristmill.web.server import listen

ANYWHERE = Settings(web={"port": 0})  # type: ignore[arg-type]


def choose(**web: object) -> Settings:
    return Settings(web={"port": 0, **web})  # type: ignore[arg-type]


async def test_the_link_of_a_server_on_loopback_signs_in_over_a_real_connection(db: Database) -> None:
    async with (
        Finder(db, ANYWHERE) as finder,
        open_web(db, ANYWHERE, ROOMS, finder) as serving,
        httpx.AsyncClient() as http,
    ):
        assert serving.link.startswith(f"http://127.0.0.1:{serving.port}/?token=")
        answer = await http.get(serving.link)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        assert (await http.get(f"http://127.0.0.1:{serving.port}/keys")).status_code == 200
        assert "server" not in answer.headers


async def test_nothing_that_a_server_logs_holds_the_token(
    db: Database, caplog: pytest.LogCaptureFixture, capfd
) -> None:
    caplog.set_level(logging.DEBUG)
    async with (
        Finder(db, ANYWHERE) as finder,
        open_web(db, ANYWHERE, ROOMS, finder) as serving,
        httpx.AsyncClient() as http,
    ):
        token = serving.link.partition("=")[2]
        await http.get(serving.link)
    ours = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert token not in "".join([*ours, *capfd.readouterr()])


async def test_others_reach_a_server_only_when_there_is_a_key(db: Database) -> None:
    for_all = choose(host="0.0.0.0")
    async with Finder(db, for_all) as finder:
        with pytest.raises(Refused, match="no key yet: make one with gristmill key add"):
            async with open_web(db, for_all, ROOMS, finder):
                pass
        async with db.transaction() as tx:
            await add_key(tx, OPERATOR, "anna", "admin")
        async with open_web(db, for_all, ROOMS, finder) as serving:
            assert "token" not in serving.link  # whoever sees the screen from afar must not come in


def test_a_port_that_is_taken_is_refused_or_the_next_one_is_chosen() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        with pytest.raises(Refused, match="GRISTMILL_WEB_PORT"):
            listen(choose(port=taken).web, roams=False)
        with listen(choose(port=taken).web, roams=True) as found:
            assert found.getsockname()[1] not in (0, taken)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.77"])
def test_an_address_that_is_not_ours_is_refused_with_a_sentence(host: str) -> None:
    with pytest.raises(Refused, match="cannot listen on"):
        listen(choose(host=host).web, roams=True)


async def test_a_server_ends_soon_though_somebody_is_still_connected(db: Database) -> None:
    settings = choose(stop="1s")
    async with Finder(db, settings) as finder:
        async with asyncio.timeout(20), open_web(db, settings, ROOMS, finder) as serving:
            reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
            writer.write(b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nkey=")
            await writer.drain()
        await reader.read()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def test_two_servers_serve_the_same_sessions(db: Database) -> None:
    async with (
        Finder(db, ANYWHERE) as finder,
        open_web(db, ANYWHERE, ROOMS, finder) as one,
        open_web(db, ANYWHERE, ROOMS, finder) as other,
        httpx.AsyncClient() as http,
    ):
        await http.get(one.link)
        (cookie,) = http.cookies.jar
        headers = {"Host": f"127.0.0.1:{one.port}", "Cookie": f"{cookie.name}={cookie.value}"}
        answer = await http.get(f"http://127.0.0.1:{other.port}/keys", headers=headers)
        assert answer.status_code == 200


async def test_a_proxy_is_believed_if_it_is_configured(db: Database) -> None:
    async with db.transaction() as tx:
        key = (await add_key(tx, OPERATOR, "anna", "admin")).secret
    for proxies, address in (((), "127.0.0.1"), (("127.0.0.1",), "203.0.113.7")):
        settings = choose(proxies=proxies)
        async with Finder(db, settings) as finder, open_web(db, settings, ROOMS, finder) as serving:
            assert await make_key_through_proxy(serving, key, f"by {address}") == address


async def make_key_through_proxy(serving: Serving, key: str, name: str) -> str:
    """The address that the audit log has of a change."""
    headers = {"Authorization": f"Bearer {key}", "X-Forwarded-For": "203.0.113.7"}
    url = f"http://127.0.0.1:{serving.port}/api"
    async with httpx.AsyncClient(headers=headers) as http:
        await http.post(f"{url}/keys", json={"name": name})
        return (await http.get(f"{url}/audit", params={"subject": f"key {name}"})).json()["items"][0]["address"]
