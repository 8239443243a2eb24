"""The indexer: large items, newer versions that overtake it, kills at any moment; each item ends as one document."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from farm import Farm, a_farm, a_mail
from feed import FEED, a_feed

from gristmill.db import Database
from gristmill.documents import Limits
from gristmill.processes import Crashed
from gristmill.queue import Done, Skip, on
from gristmill.scopes import Scope
from gristmill.sources import count_items
from gristmill.sources.indexer import Indexer
from gristmill.sources.items import STATES, list_items, load_item
from gristmill.sources.kinds import KINDS
from gristmill.sources.letters import IndexItem, PollSource

ACME = Scope("acme")


@pytest.fixture
async def farm(db: Database, tmp_path: Path) -> AsyncIterator[Farm]:
    (tmp_path / "box").mkdir()
    async with a_farm(db, tmp_path) as opened:
        yield opened


def an_indexer(farm: Farm) -> Indexer:
    return Indexer(farm.db, KINDS, farm.models.reading_processes, 60.0, 1 << 30, Limits(), farm.settings.fetch)


async def polled(farm: Farm, tmp_path: Path, **mails: bytes) -> list[IndexItem]:
    """The letters to the indexer after these mails were polled."""
    for name, mail in mails.items():
        (tmp_path / "box" / f"{name}.eml").write_bytes(mail)
    source = await farm.add("eml", path=str(tmp_path / "box"))
    await farm.by_hand(KINDS).poll(source)
    rows = await farm.rows("SELECT id, version FROM source_item ORDER BY external")
    return [IndexItem(row.id, row.version) for row in rows]


async def settle(farm: Farm, answer: object) -> None:
    assert isinstance(answer, Done | Skip), answer
    if answer.write is not None:
        async with farm.db.transaction() as tx:
            await answer.write(tx)


async def test_an_item_of_several_megabytes_becomes_a_document_byte_for_byte(farm: Farm, tmp_path: Path) -> None:
    large = a_mail("large", "line of text\r\n" * 250_000)
    (letter,) = await polled(farm, tmp_path, large=large)
    (answer,) = await an_indexer(farm).index([letter])
    await settle(farm, answer)
    (row,) = await farm.rows(
        "SELECT b.size, sha256(string_agg(p.bytes, '' ORDER BY p.n)) = b.hash AS same FROM document d "
        "JOIN blob b ON b.hash = d.hash JOIN blob_piece p ON p.blob = b.id GROUP BY b.id"
    )
    assert (row.size, row.same) == (len(large), True)
    assert await farm.rows("SELECT 1 FROM source_raw") == []


async def test_a_newer_version_that_comes_meanwhile_is_the_one_that_counts(farm: Farm, tmp_path: Path) -> None:
    (old,) = await polled(farm, tmp_path, one=a_mail("one", "Old."))
    (answer,) = await an_indexer(farm).index([old])
    await farm.rows("UPDATE source_item SET version = version + 1, state = 'NEW' RETURNING 1")
    await settle(farm, answer)
    assert await farm.documents() == {}
    assert [row.state for row in await farm.rows("SELECT state FROM source_item")] == ["NEW"]


async def test_items_are_shown_as_indexing_while_a_worker_holds_their_tasks(farm: Farm, tmp_path: Path) -> None:
    for name in ("one", "two", "three"):
        (tmp_path / "box" / f"{name}.eml").write_bytes(a_mail(name))
    source = await farm.add("eml", ACME, path=str(tmp_path / "box"))
    seen: list[tuple[list[str], dict[str, list[str]], dict[str, int]]] = []
    index, polling = farm.handlers[IndexItem.kind].run, farm.handlers[PollSource.kind]

    async def look_and_index(letters: list[IndexItem]) -> Any:
        async with farm.db.transaction(seen_from=ACME) as tx:
            states = sorted(one.state for one in await list_items(tx, source.id))
            lists = {name: [one.state for one in await list_items(tx, source.id, state=name)] for name in STATES}
            assert (await load_item(tx, source.id, letters[0].item)).state == "INDEXING"
            counts = (await count_items(tx, [source.id]))[source.id]
        seen.append((states, {name: found for name, found in lists.items() if found}, counts))
        return await index(letters)

    farm.handlers = {IndexItem.kind: on(IndexItem, look_and_index, batch=2, at_once=1), PollSource.kind: polling}
    await farm.poll(source)
    first = seen[0]
    both = {"NEW": ["NEW"], "INDEXING": ["INDEXING", "INDEXING"]}
    assert first == (["INDEXING", "INDEXING", "NEW"], both, {"NEW": 1, "INDEXING": 2})
    async with farm.db.transaction() as tx:
        assert (await count_items(tx, [source.id]))[source.id] == {"INDEXED": 3}


async def test_an_indexer_that_died_is_followed_by_one_that_ends_its_work(farm: Farm, tmp_path: Path) -> None:
    (letter,) = await polled(farm, tmp_path, one=a_mail("one"))
    await an_indexer(farm).index([letter])  # and its answer is never settled
    assert [row.state for row in await farm.rows("SELECT state FROM source_item")] == ["NEW"]
    (answer,) = await an_indexer(farm).index([letter])
    await settle(farm, answer)
    (again,) = await an_indexer(farm).index([letter])
    assert isinstance(again, Skip)
    assert await farm.documents() == {"email::one@acme.test": 1}


async def test_twins_that_are_indexed_at_the_same_moment_become_one_document(farm: Farm, tmp_path: Path) -> None:
    copies = {f"copy{n}": b"X-Copy: %d\r\n" % n + a_mail("same") for n in range(6)}
    letters = await polled(farm, tmp_path, **copies)
    answers = await an_indexer(farm).index(letters)
    await asyncio.gather(*(settle(farm, answer) for answer in answers))
    assert await farm.documents() == {"email::same@acme.test": 1}
    assert {row.state for row in await farm.rows("SELECT state FROM source_item")} == {"INDEXED"}


class Dying:
    """Processes of which the first ones die, whatever they look into."""

    def __init__(self, deaths: int) -> None:
        self.left = deaths

    async def run(self, function: Any, *args: Any, **limits: Any) -> Any:
        if self.left:
            self.left -= 1
            raise Crashed("its process was killed by SIGKILL")
        return function(*args)


@pytest.mark.parametrize(("deaths", "kind"), [(1, Done), (2, Done), (3, Skip)])
async def test_an_item_is_blamed_only_if_its_process_dies_every_time(
    farm: Farm, tmp_path: Path, deaths: int, kind: type[Done | Skip]
) -> None:
    (letter,) = await polled(farm, tmp_path, one=a_mail(1))
    processes: Any = Dying(deaths)
    indexer = replace(an_indexer(farm), processes=processes)
    (answer,) = await indexer.index([letter])
    assert isinstance(answer, kind)
    if isinstance(answer, Skip):
        assert answer.reason == "It ended the process that looked into it: its process was killed by SIGKILL."


async def test_names_that_the_database_cannot_keep_are_written_in_another_way(
    farm: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FEED_KEY", "good")
    monkeypatch.setitem(KINDS, "feed", FEED)  # pyright: ignore[reportArgumentType]
    async with a_feed() as feed:
        feed.put("a", body=rb'{"key": "a\u0000b", "text": "", "title": "T\u0000"}')
        source = await farm.add("feed", url=feed.url)
        await farm.work()
    (item,) = await farm.items(source)
    assert (item.state, item.urn, item.title) == ("INDEXED", r"feed::a\0b", r"T\0")


@pytest.mark.parametrize("half", [rb"x\u0000", rb"\ud800"], ids=["nul", "surrogate"])
async def test_an_item_that_the_database_rejects_is_set_aside_alone(
    farm: Farm, monkeypatch: pytest.MonkeyPatch, half: bytes
) -> None:
    monkeypatch.setenv("FEED_KEY", "good")
    monkeypatch.setitem(KINDS, "feed", FEED)  # pyright: ignore[reportArgumentType]
    async with a_feed() as feed:
        feed.put("a", "Hello.")
        feed.put("bad", body=b'{"key": "bad", "text": "", "messages": ["%s"]}' % half)
        feed.put("c", "Hello.")
        source = await farm.add("feed", url=feed.url)
        await farm.work()
        items = {item.external: item for item in await farm.items(source)}
        assert {name: item.state for name, item in items.items()} == {
            "a": "INDEXED",
            "bad": "SET_ASIDE",
            "c": "INDEXED",
        }
        assert "A value cannot be kept" in items["bad"].error
        assert items["bad"].raw is not None
        assert set(await farm.documents()) == {"feed::a", "feed::c"}
