"""How a source is: a pure decision from its row, so that a source in line is never shown as broken."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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


class SourceWork(NamedTuple):
    """A task that polls or lists a source now."""

    key: str
    status: str
    wait: str | None
    run_at: datetime | None


@dataclass(frozen=True)
class SourceStanding:
    """How a source is, in one word and one sentence."""

    status: Status
    sentence: str
    lag: timedelta | None  # since the last success
    next_at: datetime | None
    next_listing_at: datetime | None = None
    listing_trouble: str | None = None  # why the ids were not compared, in one sentence


def decide_status(
    source: Source,
    work: SourceWork | None,
    next_at: datetime | None,
    listing: SourceWork | None = None,
    next_listing_at: datetime | None = None,
) -> SourceStanding:
    """`work` is its poll, `listing` its listing, if one runs, stands in line or was put off."""
    trouble = find_listing_trouble(source, listing)
    if source.paused or source.awaits_agreement:
        next_listing_at = None
    elif listing and listing.wait == "time" and listing.run_at:
        next_listing_at = listing.run_at
    lag = source.now - source.succeeded_at if source.succeeded_at else None
    if work and work.wait == "time" and work.run_at:
        next_at = min(filter(None, (next_at, work.run_at))) if not source.failures else work.run_at

    def say(status: Status, sentence: str) -> SourceStanding:
        return SourceStanding(status, sentence, lag, None if source.paused else next_at, next_listing_at, trouble)

    if source.paused and is_undeclared(source):
        return say("paused", f"It is paused, since {source.declared_by} does not name it any more.")
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
    if trouble:
        return say("stopped" if is_listing_overdue(source) else "failing", trouble)
    if source.succeeded_at is None:
        return say("new", "It was not polled yet.")
    return say("active", f"It was polled {format_span(source.now - source.succeeded_at)} ago.")


def is_undeclared(source: Source) -> bool:
    """Whether a gristmill.toml has named it, and does not any more; nobody has paused or resumed it since."""
    return source.declared_by is not None and not source.declared


def is_overdue(source: Source) -> bool:
    since = max(filter(None, (source.succeeded_at, source.expected_from)))
    return source.now - since > PATIENCE * source.every


def find_listing_trouble(source: Source, work: SourceWork | None) -> str | None:
    """What a person should know of its listings; one that runs or stands in line is no trouble."""
    if source.paused or (work and work.wait is None):
        return None
    if source.awaits_agreement:
        return source.listing_error
    if is_listing_overdue(source):
        since = source.listing_succeeded_at or source.expected_from
        why = source.listing_error or "nobody has compared them; is a worker running?"
        return f"Its ids were not compared for {format_span(source.now - since)}: {why}"
    return f"Its ids could not be compared: {source.listing_error}" if source.listing_failures else None


def is_listing_overdue(source: Source) -> bool:
    since = max(filter(None, (source.listing_succeeded_at, source.expected_from)))
    return source.now - since > PATIENCE * source.listing_every


class _NextRow(NamedTuple):
    name: str
    next_at: datetime | None


async def load_standings(tx: Tx, sources: Sequence[Source]) -> dict[SourceId, SourceStanding]:
    """How each of these sources is."""
    keys = [key(one.id) for one in sources for key in (poll_key, list_key)]
    work: Mapping[str, SourceWork] = {row.key: row for row in await tx.all(SQL["poll_tasks"], SourceWork, keys=keys)}
    planned = {row.name: row.next_at for row in await tx.all(SQL["next_polls"], _NextRow, names=keys)}

    def decide(source: Source) -> SourceStanding:
        poll, list_ = poll_key(source.id), list_key(source.id)
        return decide_status(source, work.get(poll), planned.get(poll), work.get(list_), planned.get(list_))

    return {one.id: decide(one) for one in sources}


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
NOT_COMPARED = "source-not-compared"
MOSTLY_GONE = "source-mostly-gone"
UNDECLARED = "source-undeclared"
KEPT_WAITING = "source-waiting"
RULES = (SOURCE_STOPPED, NOT_COMPARED, MOSTLY_GONE, UNDECLARED, KEPT_WAITING)
LONG_WAIT = timedelta(hours=1)  # many providers count what they allow by the hour


async def find_stopped_sources(tx: Tx, settings: Settings) -> list[Finding]:
    """The sources that have not succeeded within twice their interval, though nothing keeps them waiting."""
    sources = await tx.all(SQL["list_sources"], Source, client=None, project=None)
    standings = await load_standings(tx, sources)
    return [found for one in sources if (found := judge_source(one, standings[one.id])) is not None]


def judge_source(source: Source, standing: SourceStanding) -> Finding | None:
    """What the alarms say of a source; of several troubles, the one that a person has to see first."""
    test = f"Run gristmill source test {source.name}."
    if source.paused and is_undeclared(source):
        advice = f"Name it there again, or run gristmill source resume {source.name}; pause or rm end this alarm, too."
        return _tell(source, UNDECLARED, f"The source {source.name} rests. {standing.sentence}", advice)
    if source.awaits_agreement and not source.paused:
        sync = f"gristmill source sync {source.name} --full"
        advice = f"If they are gone, agree on its page, or run {sync} --agree. If not, mend it, and run {sync}."
        return _tell(source, MOSTLY_GONE, f"{source.listing_error}", advice)
    if standing.status == "stopped" and is_overdue(source):
        return _tell(source, SOURCE_STOPPED, f"The source {source.name} has stopped. {standing.sentence}", test)
    if source.waits_for and is_overdue(source) and not source.paused:
        since = source.now - (source.succeeded_at or source.expected_from)
        waits = f"The source {source.name} is kept waiting, and has not succeeded for {format_span(since)}"
        advice = (
            "If it stays so, poll it less often, or ask its provider for more: many allow more to those who sign in."
        )
        return replace(_tell(source, KEPT_WAITING, f"{waits}: {source.waits_for}", advice), lasting=LONG_WAIT)
    if standing.listing_trouble and is_listing_overdue(source):
        return _tell(
            source, NOT_COMPARED, f"What is gone at {source.name} stays here. {standing.listing_trouble}", test
        )
    return None


def _tell(source: Source, rule: str, sentence: str, advice: str) -> Finding:
    return Finding(rule, f"{source.name} ({source.id})", sentence, advice, scope=source.scope)
