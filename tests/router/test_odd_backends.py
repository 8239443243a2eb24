"""Backends that speak HTTP in ways of their own: none of it reaches a client as a wrong answer."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from .conftest import PATIENCE, Router, Scene

LISTED = {"models": [{"name": "plain:latest", "model": "plain:latest", "size": 1, "size_vram": 1}]}
SAID = {"model": "plain", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": "hi"}}
LINE = json.dumps({**SAID, "done": True, "done_reason": "stop"}).encode() + b"\n"

Answers = Callable[[asyncio.StreamWriter], Awaitable[None]]


def framed(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


@asynccontextmanager
async def odd(scene: Scene, chat: Answers, **settings: object) -> AsyncIterator[Router]:
    """A router in front of a backend that answers chats in its own way, and everything else as it should."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).lower():
                length = next((line.split(b":")[1] for line in head.split(b"\r\n") if b"content-length" in line), b"0")
                await reader.readexactly(int(length))
                if b" /api/chat " in head:
                    await chat(writer)
                else:
                    writer.write(framed(json.dumps({**LISTED, "version": "0.12.6"}).encode()))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    spec = {"name": "odd", "url": f"http://127.0.0.1:{port}", "parallel": 2}
    try:
        yield await scene.router(spec, **settings)
    finally:
        server.close()


async def failures(router: Router) -> dict[str, int]:
    return (await router.status())["backends"][0]["breaker"]["failures"]


async def test_a_kept_connection_that_the_backend_has_closed_is_nobodys_fault(scene: Scene) -> None:
    async def answers_and_leaves(writer: asyncio.StreamWriter) -> None:
        writer.write(framed(LINE))
        await writer.drain()
        writer.transport.abort()  # without having said so: what is sent on it next is lost

    async with odd(scene, answers_and_leaves) as router:
        for _ in range(20):
            assert (await router.chat("a", model="plain"))[0] == 200
        assert await failures(router) == {}


async def test_headers_that_do_not_end_are_the_backends_failure(scene: Scene) -> None:
    async def endless(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while not writer.is_closing():
            writer.write(b"X-More: " + b"a" * 60_000 + b"\r\n")
            await writer.drain()

    async with odd(scene, endless) as router:
        status, answer = await router.chat("a", model="plain")
        assert (status, "headers do not end" in answer["error"]) == (502, True)
        assert await failures(router) == {"broken": 1}


async def test_what_nobody_asked_for_never_becomes_the_next_answer(scene: Scene) -> None:
    stray = LINE.replace(b"hi", b"not yours")

    async def answers_twice(writer: asyncio.StreamWriter) -> None:
        writer.write(framed(LINE) + framed(stray))

    async with odd(scene, answers_twice) as router:
        for _ in range(5):
            status, answer = await router.chat("a", model="plain")
            assert (status, answer["message"]["content"]) == (200, "hi")


async def test_an_answer_that_is_cut_short_is_no_answer(scene: Scene) -> None:
    async def cut(writer: asyncio.StreamWriter) -> None:
        writer.write(framed(LINE)[:-20])
        await writer.drain()
        writer.close()

    async with odd(scene, cut) as router:
        assert (await router.chat("a", model="plain"))[0] == 502
        assert await failures(router) == {"broken": 1}


async def test_an_answer_without_a_length_ends_with_its_connection(scene: Scene) -> None:
    async def old_style(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n" + LINE)
        await writer.drain()
        writer.close()

    async with odd(scene, old_style) as router:
        status, answer = await router.chat("a", model="plain")
        assert (status, answer["message"]["content"]) == (200, "hi")


async def test_the_rest_of_what_nobody_asked_for_never_becomes_the_next_answer(scene: Scene) -> None:
    stray = framed(LINE.replace(b"hi", b"not yours"))
    rest: dict[asyncio.StreamWriter, bytes] = {}

    async def answers_one_and_a_half_times(writer: asyncio.StreamWriter) -> None:
        writer.write(rest.get(writer, b"") + framed(LINE) + stray[:-30])
        rest[writer] = stray[-30:]

    async with odd(scene, answers_one_and_a_half_times) as router:
        for _ in range(5):
            status, answer = await asyncio.wait_for(router.chat("a", model="plain"), PATIENCE)
            assert (status, answer["message"]["content"]) == (200, "hi")


async def test_hints_before_an_answer_are_not_the_answer(scene: Scene) -> None:
    async def hints(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        await writer.drain()
        writer.write(framed(LINE))

    async with odd(scene, hints) as router:
        for _ in range(5):
            status, answer = await router.chat("a", model="plain")
            assert (status, answer["message"]["content"]) == (200, "hi")
        assert await failures(router) == {}


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified", b"302 Found\r\nContent-Length: 0"])
async def test_a_status_that_is_neither_answer_nor_refusal_is_the_backends_failure(scene: Scene, status: bytes) -> None:
    async def strange(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 %b\r\n\r\n" % status)

    async with odd(scene, strange) as router:
        told, answer = await router.chat("a", model="plain")
        assert (told, f"it said {int(status[:3])}" in answer["error"]) == (502, True)
        assert await failures(router) == {"status": 1}


@pytest.mark.parametrize("message", ["5", '{"content": 3}', '{"tool_calls": [null]}', '{"tool_calls": 7}'])
async def test_an_answer_of_another_shape_is_the_backends_failure_also_when_it_is_translated(
    scene: Scene, message: str
) -> None:
    async def misshapen(writer: asyncio.StreamWriter) -> None:
        writer.write(framed(b'{"model": "plain", "message": %b, "done": true}\n' % message.encode()))

    async with odd(scene, misshapen) as router:
        asked = {"model": "plain", "messages": [{"role": "user", "content": "a"}]}
        async with router.http.post(f"{router.url}/v1/chat/completions", json=asked) as answer:
            assert (answer.status, "the backend's answer" in await answer.text()) == (502, True)
