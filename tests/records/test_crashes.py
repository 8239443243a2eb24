"""Whatever is killed, and whenever: every row is loaded once, and every record embedded once."""

import asyncio
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from tables import House, reviews

from gristmill.db import Tx
from gristmill.errors import Transient
from gristmill.models import FakeEmbedder
from gristmill.queue import Worker, bind
from gristmill.records import RowCounts, remove_import
from gristmill.records import vectorize as vectorizing
from gristmill.records.imports import load_stored
from gristmill.records.load import SQL as LOADING
from gristmill.records.load import write_portion
from gristmill.records.model import FilePlace
from gristmill.records.reading import read_portion
from gristmill.records.shaping import Owner


def kill_at(monkeypatch: pytest.MonkeyPatch, statement: str, at: int) -> None:
    """The statement with this text fails at its n-th run, as if the connection had been cut."""
    runs = count(1)
    for name in ("execute", "copy", "one", "all", "value", "add"):
        original = getattr(Tx, name)

        async def run(self: Tx, query: Any, *args: Any, original: Any = original, **params: Any) -> Any:
            if query == statement and next(runs) == at:
                raise Transient("cut")
            return await original(self, query, *args, **params)

        monkeypatch.setattr(Tx, name, run)


async def embedded_once(house: House, n: int) -> None:
    async with house.db.transaction() as tx:
        linked = "SELECT count(*) FROM data_records r JOIN chunk c ON c.id = r.chunk AND c.page = r.row"
        assert await tx.value(linked) == n
        for table in ("chunk", "embedding", "fresh_terms"):
            assert await tx.value(f"SELECT count(*) FROM {table}") == n, table  # pyright: ignore[reportArgumentType]


STEPS = ("lock_project", "lock_import", "known_ids", "known_texts", "copy_records", "note_portion", "finish_import")


@pytest.mark.parametrize("step", STEPS)
async def test_a_load_that_is_cut_at_any_step_loads_every_row_once(
    house: House, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = house.with_settings(batch=4)
    started = await small.add(reviews(10), embed=False)
    kill_at(monkeypatch, LOADING[step], 1 if step == "finish_import" else 2)
    await run_until_it_is_loaded(small)
    report = await small.report(started.document)
    assert (report.state, report.counts) == ("loaded", RowCounts(loaded=10))
    assert len(await small.records()) == 10


async def run_until_it_is_loaded(house: House) -> None:
    """A task that fails is retried after a pause: the clock is moved over it."""
    for _ in range(5):
        await Worker(house.db, bind(*house.handlers), house.settings.queue, until_idle=True, leave_scheduled=True).run()
        async with house.db.transaction() as tx:
            if not await tx.value("SELECT count(*) FROM task WHERE outcome IS NULL"):
                return
            await tx.execute("UPDATE task SET run_at = clock() WHERE wait = 'time'")
    raise AssertionError("it did not end")


@pytest.mark.parametrize("step", ["waiting", "lock_waiting", "link_chunks", "add_cost"])
async def test_an_embedding_that_is_cut_at_any_step_embeds_every_record_once(
    house: House, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = house.with_settings(embed_job=6, embed_batch=2)
    await small.add(reviews(10))
    kill_at(monkeypatch, vectorizing.SQL[step], 2)
    await run_until_it_is_loaded(small)
    await embedded_once(small, 10)


async def test_a_worker_that_is_stopped_in_the_middle_hands_its_load_to_the_next(house: House) -> None:
    small = house.with_settings(batch=2)
    started = await small.add(reviews(2_000), embed=False)
    worker = Worker(small.db, bind(*small.handlers), quick_to_stop(small), queues=["ingestion"])
    running = asyncio.create_task(worker.run())
    while (await small.report(started.document)).counts.loaded == 0:  # noqa: ASYNC110 another task's work
        await asyncio.sleep(0.01)
    worker.stop()
    await running
    report = await small.report(started.document)
    assert 0 < report.counts.loaded < 2_000
    await small.with_settings(batch=1_000).work()
    assert (await small.report(started.document)).counts == RowCounts(loaded=2_000)
    async with small.db.transaction() as tx:
        assert await tx.value("SELECT max(attempts) FROM task WHERE kind = 'ingestion.ingest_data'") == 1


def quick_to_stop(house: House) -> Any:
    return house.settings.queue.model_copy(update={"stop": house.settings.queue.stop * 0})


async def test_a_portion_that_another_worker_wrote_is_not_written_again(house: House) -> None:
    """The worker of before lost its lease and does not know it yet."""
    started = await house.add(reviews(4), embed=False)
    path = house.folder / "reviews.csv"
    async with house.db.transaction() as tx:
        found = await load_stored(tx, started.document)
    portion = read_portion(str(path), found.plan, FilePlace(), Owner(found.scope, found.id, "2026-01-01"), 100)
    await write_portion(house.db, found, FilePlace(), portion, 10)
    with pytest.raises(Transient, match="another worker loads this import"):
        await write_portion(house.db, found, FilePlace(), portion, 10)
    await house.work()
    assert (await house.report(started.document)).counts == RowCounts(loaded=4)


async def test_an_import_that_is_removed_while_it_loads_leaves_nothing(house: House) -> None:
    small = house.with_settings(batch=2)
    started = await small.add(reviews(2_000), embed=False)
    running = asyncio.create_task(small.work())
    while (await small.report(started.document)).counts.loaded == 0:  # noqa: ASYNC110 another task's work
        await asyncio.sleep(0.01)
    await remove_import(small.db, started.document)
    await running
    assert await small.records() == []


async def test_two_imports_into_one_project_at_once_add_every_record_once(house: House) -> None:
    small = house.with_settings(batch=50)
    first = await small.add(reviews(600), name="a.csv", embed=False)
    second = await small.add(reviews(600, start=300), name="b.csv", embed=False)
    await asyncio.gather(small.work(), small.work())
    counts = [(await small.report(one.document)).counts for one in (first, second)]
    assert len(await small.records()) == 899
    assert sum(one.loaded for one in counts) == 899
    assert sum(one.duplicate for one in counts) == 301


async def test_one_job_of_a_project_asks_the_model_at_a_time(house: House) -> None:
    running, most = 0, 0

    class Watched(FakeEmbedder):
        async def embed(self, texts: Any) -> list[bytes]:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.01)
            running -= 1
            return await super().embed(texts)

    watched = replace(house.with_settings(embed_job=5, embed_batch=5), embedder=Watched())
    await watched.add(reviews(20))
    await watched.add(reviews(20, start=100))
    await asyncio.gather(watched.work(), watched.work())
    await embedded_once(watched, 40)
    assert most == 1


async def test_a_record_that_changes_while_it_is_embedded_gets_the_vector_of_its_new_text(house: House) -> None:
    class Slow(FakeEmbedder):
        def __init__(self) -> None:
            super().__init__()
            self.asked, self.go = asyncio.Event(), asyncio.Event()

        async def embed(self, texts: Any) -> list[bytes]:
            if any("sacks of grain" in text for text in texts) and not self.go.is_set():
                self.asked.set()
                await self.go.wait()
            return await super().embed(texts)

    slow = replace(house, embedder=Slow())
    await slow.add(reviews(1))
    working = asyncio.create_task(slow.work())
    await slow.embedder.asked.wait()  # type: ignore[attr-defined]
    changed = await slow.add(reviews(1).replace("sacks of grain", "sacks of rye"))
    while (await slow.report(changed.document)).state != "loaded":  # noqa: ASYNC110 another task's work
        await asyncio.sleep(0.01)
    slow.embedder.go.set()  # type: ignore[attr-defined]
    await working
    assert (await slow.report(changed.document)).counts == RowCounts(updated=1)
    await embedded_once(slow, 1)
    async with slow.db.transaction() as tx:
        assert await tx.value("SELECT text FROM chunk") == "Review number 1: the mill grinds 1 sacks of rye"
