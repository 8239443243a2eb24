"""How a source is: a pure decision from its row, so that a source in line is never shown as broken."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from gristmill.db import Tx
from gristmill.ids import SourceId
from gristmill.settings import Settings
from gristmill.sources.model import Source
from gristmill.sources.poller import list_key, poll_key
from gristmill.sources.store import SQL
from gristmill.telemetry import Finding
from gristmill.wording import format_span

Status = Literal["new", "polling", "active", "waiting", "failing", "stopped", "paused"]
PATIENCE = 2  # intervals without a success after which a source has stopped


class Work(NamedTuple):
    """A task that polls or lists a source now."""

    key: str
    status: str
    wait: str | None
    run_at: datetime | None


@dataclass(frozen=True)
class Standing:
    """How a source is, in one word and one sentence."""

    status: Status
    sentence: str
    lag: timedelta | None  # since the last success
    next_at: datetime | None


def decide_status(source: Source, work: Work | None, next_at: datetime | None) -> Standing:
    """`work` is its poll, if one runs, stands in line or was put off."""
    lag = source.now - source.succeeded_at if source.succeeded_at else None
    if work and work.wait == "time" and work.run_at:
        next_at = min(filter(None, (next_at, work.run_at))) if not source.failures else work.run_at

    def say(status: Status, sentence: str) -> Standing:
        return Standing(status, sentence, lag, None if source.paused else next_at)

    if source.paused:
        return say("paused", "It is paused: gristmill source resume lets it go on.")
    if work and work.status == "processing":
        return say("polling", "It is being polled.")
    if source.waits_until and source.waits_until > source.now:
        wait = format_span(source.waits_until - source.now)
        return say("waiting", f"It waits for its turn, {wait} more: {source.waits_for}")
    if work and work.wait is None and not source.failures:
        return say("waiting", "It stands in line to be polled.")
    if is_overdue(source):
        since = source.succeeded_at or source.expected_from
        why = source.error or "nobody polled it; is a worker running?"
        return say("stopped", f"It has not succeeded for {format_span(source.now - since)}: {why}")
    if source.failures:
        return say("failing", f"{source.error}")
    if source.succeeded_at is None:
        return say("new", "It was not polled yet.")
    return say("active", f"It was polled {format_span(source.now - source.succeeded_at)} ago.")


def is_overdue(source: Source) -> bool:
    since = max(filter(None, (source.succeeded_at, source.expected_from)))
    return source.now - since > PATIENCE * source.every


class _NextRow(NamedTuple):
    name: str
    next_at: datetime | None


async def load_standings(tx: Tx, sources: Sequence[Source]) -> dict[SourceId, Standing]:
    """How each of these sources is."""
    keys = [poll_key(one.id) for one in sources]
    rows = await tx.all(SQL["poll_tasks"], Work, keys=[*keys, *(list_key(one.id) for one in sources)])
    work: Mapping[str, Work] = {row.key: row for row in rows}
    planned = {row.name: row.next_at for row in await tx.all(SQL["next_polls"], _NextRow, names=keys)}
    return {one.id: decide_status(one, work.get(poll_key(one.id)), planned.get(poll_key(one.id))) for one in sources}


class _CountRow(NamedTuple):
    source: SourceId
    state: str
    n: int


async def count_items(tx: Tx, sources: Sequence[SourceId]) -> dict[SourceId, dict[str, int]]:
    """How many items of each source are in each state."""
    counts: dict[SourceId, dict[str, int]] = {one: {} for one in sources}
    for row in await tx.all(SQL["counts"], _CountRow, ids=list(sources)):
        counts[row.source][row.state] = row.n
    return counts


SOURCE_STOPPED = "source-stopped"


async def find_stopped_sources(tx: Tx, settings: Settings) -> list[Finding]:
    """The sources that have not succeeded within twice their interval, though nothing keeps them waiting."""
    sources = await tx.all(SQL["list_sources"], Source, client=None, project=None)
    standings = await load_standings(tx, sources)
    return [
        Finding(
            SOURCE_STOPPED,
            f"{one.name} ({one.id})",
            f"The source {one.name} has stopped. {standings[one.id].sentence}",
            f"Run gristmill source test {one.name}.",
            scope=one.scope,
        )
        for one in sources
        if standings[one.id].status == "stopped"
    ]
