"""Clients that send what they should not: every one is told, and nothing of it reaches a backend."""

import asyncio
import json

import pytest

from .conftest import Fake, Router, Scene, until, with_little_room

ASKED = b'{"model": "plain", "messages": [{"role": "user", "content": "hello"}], "stream": false}'


async def said(router: Router, data: bytes) -> bytes:
    """All that a client hears who sends these bytes and waits until it is hung up on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", router.port)
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(), 60)
    finally:
        writer.close()


def post(body: bytes, *headers: bytes) -> bytes:
    lines = b"".join(line + b"\r\n" for line in (b"Content-Length: %d" % len(body), *headers))
    return b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\n" + lines + b"\r\n" + body


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x16\x03\x01 this is no HTTP\r\n\r\n", 400),
        (post(ASKED, b"Transfer-Encoding: chunked"), 400),
        (post(ASKED, b"Content-Length: 3"), 400),
        (post(ASKED, b"X-Folded: a\r\n b"), 400),
        (b"GET http://[::1/ HTTP/1.1\r\n\r\n", 400),
        (post(ASKED, b"X-Long: " + b"a" * 300_000), 431),
        (post(ASKED, b"Content-Encoding: gzip"), 415),
        (post(ASKED).replace(b"Host: localhost\r\n", b""), 400),
        (post(ASKED, b"Host: localhost"), 400),
        (b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n", 405),
    ],
)
async def test_what_is_not_proper_http_is_refused_and_reaches_no_backend(
    scene: Scene, sent: bytes, status: int
) -> None:
    gpu = await scene.backend()
    router = await scene.router(gpu)
    assert (await said(router, sent)).startswith(b"HTTP/1.1 %d " % status)
    assert (await gpu.stats())["started"] == 0


@pytest.mark.parametrize("sent", [b"POST /api/chat HTTP/1.1\r\nHost", post(b" " * 10)[:-5]])
async def test_a_request_that_never_ends_is_given_up(scene: Scene, sent: bytes) -> None:
    router = await scene.router(await scene.backend(), client_timeout="100ms")
    assert (await said(router, sent)).startswith(b"HTTP/1.1 408 ")


async def test_pipelined_requests_are_answered_in_turn_and_nothing_after_a_close(scene: Scene) -> None:
    gpu = await scene.backend()
    router = await scene.router(gpu)
    last = post(ASKED, b"Connection: close")
    assert (await said(router, post(ASKED) * 40 + last + post(ASKED))).count(b"HTTP/1.1 200 ") == 41
    assert (await gpu.stats())["finished"] == 41


async def test_an_offer_to_change_protocols_is_declined_and_the_request_answered(scene: Scene) -> None:
    router = await scene.router(await scene.backend())
    offer = post(ASKED, b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABk")
    heard = await said(router, offer + post(ASKED, b"Connection: close"))
    assert heard.count(b"HTTP/1.1 200 ") == 2


async def test_thousands_of_such_offers_in_one_go_are_declined_one_by_one(scene: Scene) -> None:
    router = await scene.router(await scene.backend())
    offer = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
    heard = await said(router, offer * 2_000 + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert heard.count(b"HTTP/1.1 200 ") == 2_001


async def test_a_body_in_crumbs_is_the_body(scene: Scene) -> None:
    router = await scene.router(await scene.backend())
    crumbs = b"".join(b"1\r\n%c\r\n" % byte for byte in ASKED) + b"0\r\n\r\n"
    head = b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    assert b"echo hello" in await said(router, head + crumbs)


@pytest.mark.parametrize(
    "body",
    [
        b'{"model": "plain", "messages": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
        b'{"model": "plain", "messages": [{"role": "user", "content": "\xff"}]}',
    ],
)
async def test_bodies_that_no_backend_could_read_are_400(scene: Scene, body: bytes) -> None:
    router = await scene.router(await scene.backend())
    assert (await said(router, post(body, b"Connection: close"))).startswith(b"HTTP/1.1 400 ")


async def test_one_absurd_context_is_not_remembered_for_everybody(scene: Scene) -> None:
    gpu = await scene.backend()
    router = await scene.router(gpu)
    await router.chat("a", model="plain", options={"num_ctx": 2**40})
    assert router.scheduler is not None
    assert router.scheduler.pins.num_ctx("plain:latest") is None


async def test_every_request_on_a_connection_speaks_for_itself(scene: Scene) -> None:
    gpu = await scene.backend()
    router = await scene.router(gpu, keys=[{"name": "a", "key": "sk-a"}], networks=[])
    mine, other = b"Authorization: Bearer sk-a", b"Authorization: Bearer sk-b"
    longer = ASKED.replace(b"hello", b"hello again")
    heard = await said(router, post(ASKED, mine) + post(longer, mine) + post(ASKED, mine) + post(ASKED, other))
    assert [part[:3] for part in heard.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"200", b"401"]
    assert (await gpu.stats())["finished"] == 3


async def is_free(router: Router) -> bool:
    return await router.taken() == 0


async def test_a_client_that_stops_reading_is_hung_up_on_and_its_slot_given_back(scene: Scene) -> None:
    gpu = await scene.backend(token=0)
    router = await scene.router(gpu, client_timeout="200ms")
    body = ASKED.replace(b'"stream": false', b'"stream": true, "options": {"num_predict": 10000000}')
    reader, writer = await with_little_room(router)
    writer.write(post(body))
    await reader.readexactly(1)  # and nothing more
    await until(lambda: gave_up(gpu))
    await until(lambda: is_free(router))
    writer.close()


async def gave_up(gpu: Fake) -> bool:
    return (await gpu.stats())["cancelled"] == 1


async def test_a_client_of_http_1_0_gets_no_chunks_and_the_end_of_the_connection_is_the_end(scene: Scene) -> None:
    router = await scene.router(await scene.backend())
    asked = post(ASKED.replace(b"false", b"true")).replace(b"HTTP/1.1", b"HTTP/1.0")
    head, _, body = (await said(router, asked)).partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert [json.loads(line)["done"] for line in body.splitlines()][-1] is True


async def test_a_head_request_is_answered_without_a_body(scene: Scene) -> None:
    router = await scene.router(await scene.backend())
    heard = await said(router, b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert heard.startswith(b"HTTP/1.1 200 ")
    assert heard.endswith(b"\r\n\r\n")
