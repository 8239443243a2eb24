"""Full listings beside the polls: their failures are their own, and what looks like a mistake waits for a person."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from farm import PATIENCE, Farm, a_farm, a_mail
from feed import FEED, FeedConnector, FeedServer, a_feed
from worlds import EmlWorld, IcsWorld, MaildirWorld

from gristmill.db import Database
from gristmill.queue import Skip, Snooze
from gristmill.scopes import GLOBAL
from gristmill.sources import listing
from gristmill.sources.items import retry_set_aside
from gristmill.sources.kinds import KINDS
from gristmill.sources.model import Source
from gristmill.sources.poller import Poller, ask_for_poll, list_key
from gristmill.sources.register import Wanted, add_source
from gristmill.sources.status import SourceStanding, find_stopped_sources, load_standings
from gristmill.telemetry import Finding


@pytest.fixture
async def feed(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FeedServer]:
    monkeypatch.setenv("FEED_KEY", "good")
    monkeypatch.setitem(KINDS, "feed", FEED)  # pyright: ignore[reportArgumentType]
    async with a_feed() as opened:
        yield opened


@pytest.fixture
async def farm(db: Database, tmp_path: Path) -> AsyncIterator[Farm]:
    async with a_farm(db, tmp_path) as opened:
        yield opened


async def finish(farm: Farm, answer: Any) -> Any:
    """Let an answer write what it has to, as the queue does."""
    if getattr(answer, "write", None):
        async with farm.db.transaction() as tx:
            await answer.write(tx)
    return answer


async def poll(farm: Farm, source: Source) -> Any:
    return await finish(farm, await farm.by_hand(KINDS).poll(source))


async def compare(farm: Farm, source: Source, *, agreed: bool = False) -> Any:
    """As the schedule does; nobody asked for it."""
    return await finish(farm, await farm.by_hand(KINDS).compare(source, agreed=agreed))


async def standing(farm: Farm, source: Source) -> SourceStanding:
    async with farm.db.transaction() as tx:
        return (await load_standings(tx, [await farm.look(source)]))[source.id]


async def alarms(farm: Farm, after: str = "0") -> list[Finding]:
    async with farm.db.transaction() as tx:
        await tx.execute(f"SET LOCAL gristmill.clock_offset = '{after}'")  # pyright: ignore[reportArgumentType]
        return await find_stopped_sources(tx, farm.settings)


def fill(folder: Path, n: int) -> None:
    folder.mkdir()
    for number in range(n):
        (folder / f"{number}.eml").write_bytes(a_mail(number))


def empty(folder: Path) -> None:
    for mail in folder.iterdir():
        mail.unlink()


async def some_mails(farm: Farm, folder: Path, n: int = 40) -> Source:
    fill(folder, n)
    source = await farm.add("eml", path=str(folder))
    await farm.work()
    return source


async def test_a_failing_listing_is_seen_though_the_polls_succeed(farm: Farm, feed: FeedServer) -> None:
    feed.put("a")
    source = await farm.add("feed", url=feed.url)
    await farm.work()
    pauses = list[float]()
    for _ in range(3):
        feed.fault = lambda request, call: web.Response(status=500)
        answer = await compare(farm, source)
        assert isinstance(answer, Snooze)
        pauses.append(answer.wait.total_seconds() / 60)
        feed.fault = lambda request, call: None
        await poll(farm, source)  # which has counters of its own
    assert pauses == [1, 5, 15]
    looked, seen = await farm.look(source), await standing(farm, source)
    assert (looked.failures, looked.error, looked.listing_failures) == (0, None, 3)
    assert seen.status == "failing"
    assert "failed (500)" in seen.sentence
    assert seen.sentence.startswith("Its ids could not be compared:")
    await compare(farm, source)
    looked = await farm.look(source)
    assert (looked.listing_failures, looked.listing_error) == (0, None)
    assert looked.listing_succeeded_at is not None
    assert (await standing(farm, source)).status == "active"


async def test_a_listing_does_not_excuse_a_poll_that_fails(farm: Farm, feed: FeedServer) -> None:
    feed.put("a")
    source = await farm.add("feed", url=feed.url)
    feed.fault = lambda request, call: web.Response(status=500)
    await farm.work()
    feed.fault = lambda request, call: None
    await compare(farm, source)
    assert (await farm.look(source)).failures == 1


async def test_a_listing_that_fails_stays_at_its_longest_pause(farm: Farm, feed: FeedServer) -> None:
    feed.put("a")
    source = await farm.add("feed", url=feed.url)
    await farm.work()
    feed.fault = lambda request, call: web.Response(status=500)
    pauses = [(await compare(farm, source)).wait.total_seconds() / 60 for _ in range(7)]
    assert pauses == [1, 5, 15, 30, 60, 60, 60]


async def test_a_listing_that_is_overdue_raises_an_alarm_though_the_polls_succeed(farm: Farm, feed: FeedServer) -> None:
    feed.put("a")
    source = await farm.add("feed", url=feed.url)
    await farm.work()
    await compare(farm, source)
    await farm.rows("UPDATE source SET succeeded_at = clock() + interval '3 days' RETURNING 1")  # polls go on meanwhile
    assert await alarms(farm, "47 hours") == []
    (found,) = await alarms(farm, "49 hours")
    assert found.rule == "source-not-compared"
    assert "nobody has compared them; is a worker running?" in found.sentence


async def test_a_listing_that_the_other_side_puts_off_is_no_failure_and_is_told_when_it_is_overdue(
    farm: Farm, feed: FeedServer
) -> None:
    feed.put("a")
    source = await farm.add("feed", url=feed.url)
    await farm.work()
    feed.fault = lambda request, call: web.Response(status=429, headers={"Retry-After": "600"})
    answer = await compare(farm, source)
    assert answer.wait.total_seconds() == 600
    assert (await standing(farm, source)).status == "active"  # its polls are not put off
    await farm.rows("UPDATE source SET succeeded_at = clock() + interval '3 days' RETURNING 1")
    (found,) = await alarms(farm, "49 hours")
    assert "asks us to come again later" in found.sentence


async def test_a_place_where_most_is_gone_waits_for_a_person(farm: Farm, tmp_path: Path) -> None:
    source = await some_mails(farm, tmp_path / "a")
    for number in range(38):
        (tmp_path / "a" / f"{number}.eml").unlink()
    first = await compare(farm, source)
    assert isinstance(first, Skip)  # nothing waits in line that would try again
    await poll(farm, source)
    seen = await standing(farm, source)
    assert seen.status == "failing"  # and stays so, however often it is polled
    assert "38 of 40 items are gone" in seen.sentence
    (found,) = await alarms(farm)
    assert found.rule == "source-mostly-gone"
    assert "source sync one --full --agree" in found.advice
    for number in range(38):
        (tmp_path / "a" / f"{number}.eml").write_bytes(a_mail(number))
    second = await compare(farm, source)
    assert isinstance(second, Skip)  # it does not even look, until a person asks for it
    await farm.compare(source)
    assert (await standing(farm, source)).status == "active"
    assert await alarms(farm) == []
    assert set((await farm.states(source)).values()) == {"INDEXED"}


async def test_a_person_who_agrees_has_them_removed_and_the_alarm_ends(farm: Farm, tmp_path: Path) -> None:
    source = await some_mails(farm, tmp_path / "a")
    for number in range(38):
        (tmp_path / "a" / f"{number}.eml").unlink()
    await farm.compare(source)
    assert (await farm.look(source)).awaits_agreement
    await farm.poll(source)  # a poll that a person asks for does not answer the question
    assert (await farm.look(source)).awaits_agreement
    await farm.compare(source, agreed=True)
    assert not (await farm.look(source)).awaits_agreement
    assert list((await farm.states(source)).values()).count("DELETED") == 38
    assert await alarms(farm) == []


async def test_the_next_listing_is_known(farm: Farm, feed: FeedServer) -> None:
    feed.put("a")
    source = await farm.add("feed", url=feed.url)
    await farm.work()
    planned = await farm.rows("SELECT next_at FROM schedule WHERE name = %(name)s", name=list_key(source.id))
    assert (await standing(farm, source)).next_listing_at == planned[0].next_at
    feed.fault = lambda request, call: web.Response(status=500)
    await farm.compare(source)  # it is put off for a minute
    seen = await standing(farm, source)
    now = (await farm.look(source)).now
    assert seen.next_listing_at is not None
    assert 0 < (seen.next_listing_at - now).total_seconds() <= 60


async def twenty_posts(farm: Farm, feed: FeedServer) -> Source:
    for n in range(20):
        feed.put(f"k{n}", "v1")
    source = await farm.add("feed", url=feed.url)
    await farm.work()
    return source


def once_while_fetching(monkeypatch: pytest.MonkeyPatch, id_: str, happen: Any) -> None:
    """Let something happen when a listing has fetched this item, and has not kept it yet."""
    done: list[str] = []
    fetch = FeedConnector.fetch

    async def and_then(self: FeedConnector, ids: Any) -> Any:
        async for item in fetch(self, ids):
            yield item
            if item.external == id_ and not done:
                done.append(id_)
                await happen()

    monkeypatch.setattr(FeedConnector, "fetch", and_then)


async def test_what_comes_back_while_a_listing_fetches_is_not_removed(
    farm: Farm, feed: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = await twenty_posts(farm, feed)
    feed.drop("k3")
    feed.put("late", "It was missed.", at="000001")

    async def come_back() -> None:
        feed.put("k3", "It is back.")
        await poll(farm, source)

    once_while_fetching(monkeypatch, "late", come_back)
    await compare(farm, source)
    await farm.work()
    assert (await farm.states(source))["k3"] == "INDEXED"
    assert "feed::k3" in await farm.documents()


async def test_what_comes_back_while_a_listing_asks_for_it_is_not_removed(
    farm: Farm, feed: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks for k3, which is gone, and then for k4, which the listing left out: meanwhile k3 comes back."""
    source = await twenty_posts(farm, feed)
    feed.drop("k3")
    left_out = feed.posts.pop("k4")

    def give_by_id(request: web.Request, call: int) -> web.StreamResponse | None:
        if not request.path.endswith("k4"):
            return None
        return web.json_response({"id": "k4", "updated": left_out.updated, "body": left_out.body.decode()})

    async def come_back() -> None:
        feed.put("k3", "It is back.")
        await poll(farm, source)

    feed.fault = give_by_id
    once_while_fetching(monkeypatch, "k4", come_back)
    await compare(farm, source)
    await farm.work()
    assert {(await farm.states(source))[one] for one in ("k3", "k4")} == {"INDEXED"}


async def test_a_listing_does_not_put_an_older_version_over_one_that_a_poll_has_brought(
    farm: Farm, feed: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = await twenty_posts(farm, feed)
    for key in ("k3", "k4"):
        feed.put(key, "v2", at="000001")  # behind the cursor: only a listing sees it

    async def change_again() -> None:
        feed.put("k3", "v3, the newest")
        await poll(farm, source)

    once_while_fetching(monkeypatch, "k3", change_again)
    await compare(farm, source)
    await farm.work()
    marks = await farm.rows("SELECT external, mark FROM source_item WHERE external IN ('k3', 'k4') ORDER BY 1")
    assert [row.mark for row in marks] == [feed.posts["k3"].updated, "000001"]
    text = await farm.rows(
        "SELECT convert_from(p.bytes, 'utf8') AS text FROM source_item i JOIN document d ON d.id = i.document"
        " JOIN blob b ON b.hash = d.hash JOIN blob_piece p ON p.blob = b.id WHERE i.external = 'k3'"
    )
    assert "v3, the newest" in text[0].text


@pytest.mark.parametrize("kind", ["eml", "maildir", "ics"])
async def test_a_folder_that_cannot_be_read_for_a_moment_loses_nothing(
    farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    world = {"eml": EmlWorld, "maildir": MaildirWorld, "ics": IcsWorld}[kind]
    outer, inner = world(tmp_path / "a"), world(tmp_path / "a" / "inner")
    await outer.put("here")
    await inner.put("deep")
    source = await farm.add(kind, path=str(tmp_path / "a"))
    await farm.work()
    assert set((await farm.states(source)).values()) == {"INDEXED"}
    scan = os.scandir

    def fail(path: Any = ".") -> Any:
        if "inner" in str(path):
            raise OSError(5, "Input/output error", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", fail)
    await outer.put("new")
    await farm.compare(source)
    assert "inner cannot be read (Input/output error)" in str((await farm.look(source)).listing_error)
    await farm.poll(source)  # what can be read goes on
    assert list((await farm.states(source)).values()) == ["INDEXED"] * 3
    monkeypatch.undo()
    await farm.compare(source)
    assert (await farm.look(source)).listing_error is None


@pytest.mark.parametrize("kind", ["eml", "maildir"])
async def test_an_item_that_was_too_large_comes_when_the_limit_is_raised_and_a_person_syncs(
    farm: Farm, tmp_path: Path, kind: str
) -> None:
    world = {"eml": EmlWorld, "maildir": MaildirWorld}[kind](tmp_path / "a")
    await world.put("large", "x\r\n" * 5_000)
    await world.put("small")
    source = await farm.add(kind, **world.options)
    narrow = farm.settings.documents.model_copy(update={"max_bytes": 4_000})
    before = Farm(farm.db, farm.settings.model_copy(update={"documents": narrow}), farm.models)
    await before.work()
    assert sorted((await farm.states(source)).values()) == ["INDEXED", "SET_ASIDE"]
    for mill, state in ((before, "SET_ASIDE"), (farm, "INDEXED")):  # still too large; and then no more
        async with farm.db.transaction() as tx:
            assert await retry_set_aside(tx, source) == 1
            await ask_for_poll(tx, source)
        await mill.work()
        assert sorted((await farm.states(source)).values()) == ["INDEXED", state]


@asynccontextmanager
async def while_it_works(farm: Farm, monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> AsyncGenerator[None]:
    """What is asked for inside is asked for after the function has looked, and before the task has ended."""
    looked, goes_on, whole = asyncio.Event(), asyncio.Event(), getattr(where, name)

    async def look(*given: Any) -> Any:
        found = await whole(*given)
        looked.set()
        await goes_on.wait()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(where, name, look)
        work = asyncio.create_task(farm.work())
        async with asyncio.timeout(PATIENCE):
            await looked.wait()
        patch.undo()
        yield
        goes_on.set()
        await work


@pytest.mark.parametrize("agreed_before", [False, True])
async def test_a_listing_that_is_asked_for_while_one_runs_follows_it(
    farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, agreed_before: bool
) -> None:
    source = await some_mails(farm, tmp_path / "a", 3)
    await farm.ask(source, listing=True, agreed=agreed_before)
    async with while_it_works(farm, monkeypatch, listing, "compare_ids"):
        (tmp_path / "a" / "1.eml").unlink()
        await farm.ask(source, listing=True)
    assert await farm.states(source) == {"0.eml": "INDEXED", "1.eml": "DELETED", "2.eml": "INDEXED"}
    rows = await farm.rows("SELECT outcome FROM task WHERE kind = 'sources.list'")
    assert [row.outcome for row in rows] == ["completed"] * 2  # and no third
    assert (await farm.look(source)).listing_agreed_at is None  # used, and not kept for a listing that nobody spoke of


@pytest.mark.parametrize("doubted", [False, True])
async def test_consent_that_is_given_while_a_listing_runs_is_that_of_the_next(
    farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, doubted: bool
) -> None:
    source = await some_mails(farm, tmp_path / "a")
    await farm.ask(source, listing=True)
    if doubted:
        empty(tmp_path / "a")
    async with while_it_works(farm, monkeypatch, listing, "compare_ids"):
        empty(tmp_path / "a")
        await farm.ask(source, listing=True, agreed=True)
        await farm.ask(source, listing=True)  # which takes nothing back
    assert set((await farm.states(source)).values()) == {"DELETED"}
    looked = await farm.look(source)
    assert (looked.listing_agreed_at, looked.awaits_agreement, looked.listing_error) == (None, False, None)


async def test_consent_outlives_a_listing_that_fails(
    farm: Farm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = await some_mails(farm, tmp_path / "a")
    empty(tmp_path / "a")
    await farm.ask(source, listing=True, agreed=True)
    with monkeypatch.context() as patch:
        patch.setattr(listing, "compare_ids", _fail)
        assert isinstance(await compare(farm, source), Snooze)
    await farm.work()
    assert set((await farm.states(source)).values()) == {"DELETED"}


async def _fail(*_: Any) -> None:
    raise OSError("the disk is away")


async def test_consent_is_for_the_place_that_a_person_has_seen(farm: Farm, tmp_path: Path) -> None:
    source = await some_mails(farm, tmp_path / "a")
    await farm.ask(source, listing=True, agreed=True)
    (tmp_path / "b").mkdir()
    async with farm.db.transaction() as tx:
        await add_source(tx, Wanted("one", "eml", {"path": str(tmp_path / "b")}, GLOBAL), replace=True)
    await farm.work()
    assert set((await farm.states(source)).values()) == {"INDEXED"}
    assert (await farm.look(source)).awaits_agreement


async def test_a_poll_that_is_asked_for_while_one_runs_follows_it(
    farm: Farm, feed: FeedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed.put("a")
    source = await farm.add("feed", url=feed.url)
    async with while_it_works(farm, monkeypatch, Poller, "_keep"):
        feed.put("b")
        await farm.ask(source)
    assert await farm.states(source) == {"a": "INDEXED", "b": "INDEXED"}
    rows = await farm.rows("SELECT outcome FROM task WHERE kind = 'sources.poll'")
    assert [row.outcome for row in rows] == ["completed"] * 2


async def test_a_mail_that_is_gone_leaves_no_word_of_it(farm: Farm, tmp_path: Path) -> None:
    world = MaildirWorld(tmp_path / "a")
    (tmp_path / "a" / "new" / "x").write_bytes(a_mail("x", Subject="Diagnosis of Mrs Novak"))
    await world.put("y")
    source = await farm.add("maildir", **world.options)
    await farm.work()
    (tmp_path / "a" / "new" / "x").unlink()
    await farm.compare(source)
    gone, here = await farm.rows("SELECT * FROM source_item ORDER BY external")
    assert (gone.state, gone.title, gone.note, gone.thread) == ("DELETED", None, {}, None)
    assert (gone.external, gone.urn, gone.removed["documents"]) == ("x", "email::x@acme.test", 1)  # the proof stays
    assert (here.state, here.title) == ("INDEXED", "Subject y")
    assert "Novak" not in str(gone)
    (tmp_path / "a" / "new" / "x").write_bytes(a_mail("x", Subject="Diagnosis of Mrs Novak"))
    await farm.poll(source)
    back, _ = await farm.items(source)
    assert (back.state, back.title, back.thread) == ("INDEXED", "Diagnosis of Mrs Novak", "x@acme.test")
