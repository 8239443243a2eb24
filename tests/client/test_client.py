"""The client against a real server: files go up, events come back over reconnects, and errors are sentences."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

from gristmill.app import ROOMS
from gristmill.client import ApiError, AsyncClient, Client, DocumentEvent, NotAnswering
from gristmill.client.calls import Call, upload, write
from gristmill.client.core import EventReader, find_pause, make_document_event
from gristmill.client.failures import choose_pause, read_problem
from gristmill.db import Database
from gristmill.knowledge import Finder
from gristmill.scopes import Scope
from gristmill.serving import Caller
from gristmill.settings import Settings, WebSettings
from gristmill.web import add_key
from gristmill.web.server import open_web

R = TypeVar("R")


@dataclass
class Served:
    """A server that listens, and a key of acme's."""

    db: Database
    address: str
    key: str

    def open_client(self, **options: Any) -> AsyncClient:
        return AsyncClient(self.address, self.key, **options)

    async def block(self, work: Callable[[Client], R]) -> R:
        """Some work with the blocking client, in a thread."""

        def run() -> R:
            with Client(self.address, self.key) as mill:
                return work(mill)

        return await asyncio.to_thread(run)

    async def complete(self, document: int) -> None:
        async with self.db.transaction() as tx:
            await tx.execute("UPDATE document SET completed_at = clock() WHERE id = %(id)s", id=document)


@pytest.fixture
async def served(db: Database, tmp_path: Path) -> AsyncIterator[Served]:
    settings = Settings(data=tmp_path / "data", web=WebSettings(port=0))
    async with db.transaction() as tx:
        key = (await add_key(tx, Caller("test", "admin", None, "test"), "acme", "manager", Scope("acme"))).secret
    async with Finder(db, settings) as finder, open_web(db, settings, ROOMS, finder) as web:
        yield Served(db, f"http://127.0.0.1:{web.port}", key)


def put(tmp_path: Path, name: str, content: str = "Good day.") -> Path:
    path = tmp_path / name
    path.write_text(content)
    return path


async def test_both_clients_do_the_same(served: Served, tmp_path: Path) -> None:
    path = put(tmp_path, "a.md", "x" * 3_000_000)
    async with served.open_client() as mill:
        taken = await mill.upload(path, name="notes/a.md")
        assert (taken.status, taken.urn) == ("added", "upload:notes/a.md")
        assert taken.document is not None
        again = await served.block(lambda other: other.upload(path, name="notes/a.md"))
        assert (again.status, again.document) == ("unchanged", taken.document)
        seen = await mill.document(taken.document)
        assert seen == await served.block(lambda other: other.document(seen.id))
        assert (seen.size, seen.client, seen.status, seen.has_ended) == (3_000_000, "acme", "pending", False)
        assert len(await mill.original(seen.id)) == 3_000_000
        assert (await mill.impact(seen.id)).documents == 1
        assert (await mill.search("nothing", alpha=0)).items == []
        assert (await mill.retry_document(seen.id)).tasks == []
        assert (await mill.remove(seen.id)).documents == 1
        with pytest.raises(ApiError, match=f"There is no document {seen.id}") as gone:
            await served.block(lambda other: other.document(seen.id))
        assert gone.value.status == 404


async def test_a_list_is_walked_to_its_end(served: Served, tmp_path: Path) -> None:
    async with served.open_client() as mill:
        for n in range(5):
            await mill.upload(put(tmp_path, f"{n}.md", f"note {n}"))
        names = [one.name async for one in mill.documents(limit=2)]
    assert names == ["4.md", "3.md", "2.md", "1.md", "0.md"]
    assert await served.block(lambda mill: [one.name for one in mill.documents(limit=2)]) == names


async def test_events_are_resumed_after_a_broken_stream(served: Served, tmp_path: Path) -> None:
    class Breaking(httpx.AsyncHTTPTransport):
        """Cuts the first stream after its first event, as a server that restarts does."""

        cut = 0

        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            answer = await super().handle_async_request(request)
            if request.url.path.endswith("/events") and not self.cut:
                self.cut += 1
                answer.stream = CutStream(answer.stream)
            return answer

    class CutStream(httpx.AsyncByteStream):
        def __init__(self, stream: Any) -> None:
            self.stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for piece in self.stream:
                yield piece
                if b"event:" in piece:
                    raise httpx.ReadError("cut")

        async def aclose(self) -> None:
            await self.stream.aclose()

    async with served.open_client(transport=Breaking()) as mill:
        taken = await mill.upload(put(tmp_path, "a.md"))
        assert taken.document is not None
        heard: list[DocumentEvent] = []
        async for event in mill.events(taken.document):
            heard.append(event)
            if event.what == "progress":
                await served.complete(taken.document)
    assert [one.what for one in heard] == ["progress", "ended"]  # each state once
    assert heard[1].document is not None
    assert heard[1].document.status == "completed"
    last = heard[1].id
    assert await served.block(lambda mill: list(mill.events(taken.document or 0, last))) == []
    assert [one.what for one in await served.block(lambda mill: list(mill.events(taken.document or 0)))] == ["ended"]


async def test_a_wrong_key_and_a_missing_server_get_a_sentence(served: Served) -> None:
    async with AsyncClient(served.address, "gm_wrong") as stranger:
        with pytest.raises(ApiError, match="unknown or was revoked") as refused:
            await stranger.document(1)
        assert refused.value.status == 401
    async with AsyncClient("http://127.0.0.1:9", "key") as nobody:
        nobody._pause = lambda _: asyncio.sleep(0)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(NotAnswering, match="does not answer"):
            await nobody.document(1)


def answering(*statuses: int) -> tuple[list[httpx.Request], httpx.MockTransport]:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        status = statuses[min(len(asked), len(statuses)) - 1]
        body = {"detail": "It is busy."} if status >= 400 else {"document": 7}
        return httpx.Response(status, json=body, headers={"Retry-After": "3"})

    return asked, httpx.MockTransport(answer)


def test_a_busy_server_is_asked_again_when_it_says_so_with_the_same_key() -> None:
    asked, transport = answering(503, 429, 200)
    pauses: list[float] = []
    with Client("http://mill", transport=transport) as mill:
        mill._pause = pauses.append  # pyright: ignore[reportPrivateUsage]
        assert mill.reindex(3) == 7
    assert pauses == [3.0, 3.0]
    assert len({one.headers["Idempotency-Key"] for one in asked}) == 1


def test_a_server_that_stays_busy_is_given_up_with_its_sentence() -> None:
    asked, transport = answering(503)
    with Client("http://mill", transport=transport) as mill:
        mill._pause = lambda _: None  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(ApiError, match=r"It is busy\."):
            mill.document(1)
    assert len(asked) == 5


def test_what_may_be_done_already_is_not_sent_twice() -> None:
    bare = Call("POST", "/x", dict)
    assert find_pause(bare, 1, None) is None
    assert find_pause(write("POST", "/x", dict), 1, None) is not None
    assert find_pause(upload([]), 1, None) is None
    assert find_pause(upload([]), 1, httpx.Response(503)) is not None  # it was refused, and nothing was done
    assert find_pause(bare, 1, httpx.Response(500)) is None


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"\xff", b'{"detail": "Say please."}'])
def test_any_answer_of_a_proxy_becomes_a_sentence(body: bytes) -> None:
    error = read_problem(502, body)
    assert (error.status, bool(error.sentence)) == (502, True)


@pytest.mark.parametrize(("said", "most"), [("7", 7.0), ("99999", 60.0), ("Wed, 21 Oct", 0.5), (None, 0.5)])
def test_the_server_decides_how_long_to_wait_within_reason(said: str | None, most: float) -> None:
    assert most / 2 <= choose_pause(1, said) <= most


def test_events_are_read_line_by_line() -> None:
    reader = EventReader(make_document_event)
    lines = ["retry: 2000", "", ": still there", "", "id: 7-gone", "event: gone", "data: {}", ""]
    (event,) = [event for line in lines for event in reader.feed(line)]
    assert event == DocumentEvent("7-gone", "gone", None)
    assert reader.last_id == "7-gone"
