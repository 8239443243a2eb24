"""Walks through updates come to an end, whatever a provider says, and a time in the future stops none of them."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import orjson
import pytest

from gristmill.errors import Transient
from gristmill.ids import SourceId
from gristmill.sources.bringing import Bringer
from gristmill.sources.cursor import MOST_IDLE, CursorPage, cap_moment, walk_pages
from gristmill.sources.model import Checkpoint, ConnectorContext, Listed, RawItem
from gristmill.sources.moments import write_moment
from gristmill.sources.tracker.connector import TrackerConnector
from gristmill.sources.wiki.confluence import ConfluenceConnector
from gristmill.sources.wiki.content import WikiEntry

MOST = 100  # questions until a walk is called endless
NOW = datetime(2026, 3, 3, tzinfo=UTC)


def answer_by(pages: Callable[[int, str, int], CursorPage[str]]) -> Callable[[str, int], Awaitable[CursorPage[str]]]:
    asked = 0

    async def fetch(since: str, skip: int) -> CursorPage[str]:
        nonlocal asked
        asked += 1
        assert asked < MOST, "it would never end"
        return pages(asked, since, skip)

    return fetch


async def walk(pages: Callable[[int, str, int], CursorPage[str]]) -> list[str]:
    return [item async for page, _ in walk_pages(answer_by(pages), {}) for item in page.items]


async def test_empty_pages_that_promise_more_come_to_an_end() -> None:
    with pytest.raises(Transient, match="gives nothing"):
        await walk(lambda n, since, skip: CursorPage([], [], more=True))


async def test_a_full_page_of_one_time_and_empty_ones_behind_it_come_to_an_end() -> None:
    def pages(n: int, since: str, skip: int) -> CursorPage[str]:
        return CursorPage(["a", "b"], ["1", "1"], more=True) if skip == 0 else CursorPage([], [], more=True)

    with pytest.raises(Transient, match="gives nothing"):
        await walk(pages)


async def test_a_provider_that_gives_the_same_page_again_and_again_comes_to_an_end() -> None:
    with pytest.raises(Transient, match="gives nothing"):
        await walk(lambda n, since, skip: CursorPage(["a", "b"], ["1", "1"], more=True))


async def test_some_empty_pages_among_others_lose_nothing() -> None:
    """As the Cloud of Jira sends them where it hides issues from us."""

    def pages(n: int, since: str, skip: int) -> CursorPage[str]:
        if n % 5:
            return CursorPage([], [], more=True)
        return CursorPage([f"issue {n}"], ["1"], more=n < 3 * MOST_IDLE)

    assert await walk(pages) == [f"issue {n}" for n in range(5, 3 * MOST_IDLE + 1, 5)]


@pytest.mark.parametrize(
    ("said", "now", "kept"),
    [
        ("2031-01-01T00:00:00.000Z", NOW, "2026-03-03T00:00:00.000Z"),
        ("2026-03-01T00:00:00.000Z", NOW, "2026-03-01T00:00:00.000Z"),
        ("", NOW, ""),
        ("2031-01-01T00:00:00.000Z", None, "2031-01-01T00:00:00.000Z"),
    ],
)
def test_a_time_in_the_future_is_now(said: str, now: datetime | None, kept: str) -> None:
    assert cap_moment(said, now) == kept


class Everything:
    """Nothing is known yet."""

    async def find_unlike(self, listed: Sequence[Listed]) -> list[Listed]:
        return list(listed)


BENCH = ConnectorContext(SourceId(1), "one", Everything(), Path("/"), 1 << 20)  # type: ignore[arg-type]


class Issues:
    """A tracker and a wiki at once: things by their times."""

    streams = comments = ("",)
    portion = 10
    now = NOW

    def __init__(self, **times: datetime) -> None:
        self.times = {name: write_moment(time) for name, time in times.items()}

    async def check(self) -> str:
        return ""

    def find(self, since: str) -> list[tuple[str, str]]:
        return sorted((time, name) for name, time in self.times.items() if time >= since)

    async def list_updated(self, stream: str, since: str, skip: int) -> CursorPage[Listed]:
        rows = self.find(since)
        return CursorPage([Listed(name, time) for time, name in rows], [time for time, _ in rows], False)

    async def list_newest(self, sort: str, since: str):  # type: ignore[no-untyped-def]
        yield [WikiEntry(Listed(name, time), time) for time, name in reversed(self.find(since))]

    async def fetch(self, ids: Sequence[str]) -> list[RawItem]:
        return [RawItem(one, one.encode(), self.times[one]) for one in ids]


@pytest.mark.parametrize("kind", ["tracker", "wiki"])
async def test_an_issue_of_the_future_does_not_end_the_polling_of_the_others(kind: str) -> None:
    things = Issues(one=NOW - timedelta(days=2), future=NOW + timedelta(days=2_000))
    connector = TrackerConnector(things, BENCH) if kind == "tracker" else ConfluenceConnector(things, BENCH, [""])
    checkpoint: Checkpoint = {}
    async for batch in connector.changes(checkpoint):
        checkpoint = batch.checkpoint
    things.times["late"] = write_moment(NOW)
    assert "late" in [item.external async for batch in connector.changes(checkpoint) for item in batch.items]


async def test_an_issue_that_is_nested_too_deep_is_set_aside_alone() -> None:
    def nest(depth: int) -> dict[str, object]:
        tree: dict[str, object] = {}
        for _ in range(depth):
            tree = {"content": [tree]}
        return tree

    async def fetch(ids: Sequence[str]) -> list[RawItem]:
        return [RawItem(one, orjson.dumps(nest(1_000 if one == "deep" else 1))) for one in ids]

    async def check() -> str:
        return ""

    bringer = Bringer(fetch, check, 10, 1 << 20)
    found = {item.external: item.refusal async for item in bringer.bring_each(["a", "deep", "b"])}
    assert found == {"a": "", "deep": "It could not be fetched: it is nested too deep.", "b": ""}
