"""Replays history: decides about past items again, with today's rules and conventions, and changes nothing."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from gristmill.db import Database, Viewpoint, queries
from gristmill.ids import DecisionId, WorkItemId
from gristmill.processes import ProcessPool
from gristmill.qualifier.casework import make_case, word_item
from gristmill.qualifier.deciding import ItemVerdict, decide
from gristmill.qualifier.decisions import Decision, Inputs, find_documents_read, read_inputs
from gristmill.qualifier.model import ItemText, RouteTo, Urgency
from gristmill.qualifier.qualification import Customs, load_customs
from gristmill.qualifier.reading import ItemWording, ScopeTerms
from gristmill.qualifier.reasons import DecisionStep
from gristmill.qualifier.texts import load_item_texts
from gristmill.settings import QualifierSettings

SQL = queries("gristmill.qualifier", "replay.sql")
PORTION = 250  # decisions that one child process is given at a time
LONGEST = 300.0  # seconds that a child may take for a portion
MOST_SHOWN = 1_000  # differences that are kept
MOST = 10_000_000  # decisions that are counted
SAME_TIME = timedelta(minutes=1)  # two times that differ by less are the same


@dataclass(frozen=True)
class DecisionReplayWish:
    """Which decisions are made again."""

    since: datetime
    client: str | None = None  # None: all that are seen
    project: str | None = None
    most: int = MOST


@dataclass(frozen=True)
class ReplayedOutcome:
    """What a decision came to."""

    route: RouteTo
    urgency: Urgency
    deadline: datetime | None = None
    scheduled_at: datetime | None = None
    target: WorkItemId | None = None
    assign: str = ""


@dataclass(frozen=True)
class DecisionDifference:
    """An item that would be decided otherwise today."""

    item: WorkItemId
    title: str
    client: str
    project: str
    decided_at: datetime
    was: ReplayedOutcome
    now: ReplayedOutcome
    because: Sequence[DecisionStep]  # the path of today
    is_other_text: bool  # its words are not those that were decided about


@dataclass
class ReplayReport:
    """What a replay found."""

    since: datetime
    looked_at: int = 0
    unreadable: int = 0  # items whose words are gone
    changed: int = 0
    lowered: int = 0  # of those: work that would be none today
    kinds: Counter[str] = field(default_factory=Counter[str])  # “now → later”: how many
    differences: list[DecisionDifference] = field(default_factory=list[DecisionDifference])


@dataclass(frozen=True)
class _Job:
    """An item as a child process gets it."""

    decision: DecisionId
    item: WorkItemId
    title: str
    client: str
    project: str
    decided_at: datetime
    was: ReplayedOutcome
    digest: bytes
    wording: ItemWording
    terms: ScopeTerms
    inputs: Inputs


async def replay(
    db: Database,
    settings: QualifierSettings,
    wish: DecisionReplayWish,
    *,
    processes: int = 2,
    seen_from: Viewpoint | None = None,
    tell: Callable[[int, int], None] = lambda _done, _all: None,
) -> ReplayReport:
    """Decide again, in child processes; `tell` hears how far it is."""
    report = ReplayReport(wish.since)
    total = await _count(db, wish, seen_from)
    pool = ProcessPool(processes)
    running: set[asyncio.Task[tuple[int, list[DecisionDifference]]]] = set()
    try:
        async for jobs, missing in _load_portions(db, settings, wish, seen_from):
            report.unreadable += missing
            running.add(asyncio.create_task(_run(pool, jobs)))
            if len(running) > processes:
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                _add_up(report, done)
                tell(report.looked_at, total)
        if running:
            done, running = await asyncio.wait(running)
            _add_up(report, done)
        tell(report.looked_at, total)
    finally:
        for task in running:
            task.cancel()
        await pool.close()
    report.differences.sort(key=lambda one: one.item)
    return report


async def _run(pool: ProcessPool, jobs: Sequence[_Job]) -> tuple[int, list[DecisionDifference]]:
    return len(jobs), await pool.run(decide_again, jobs, timeout=LONGEST)


def _add_up(report: ReplayReport, done: set[asyncio.Task[tuple[int, list[DecisionDifference]]]]) -> None:
    for task in done:
        n, found = task.result()
        report.looked_at += n
        report.changed += len(found)
        report.lowered += sum(is_lowered(one) for one in found)
        report.kinds.update(f"{one.was.route} → {one.now.route}" for one in found if one.was.route != one.now.route)
        report.differences += found[: MOST_SHOWN - len(report.differences)]


def is_lowered(one: DecisionDifference) -> bool:
    """Whether something that was work would be put away today."""
    away = ("info_only", "handled")
    return one.was.route not in away and one.now.route in away


# --- reading


async def _count(db: Database, wish: DecisionReplayWish, seen_from: Viewpoint | None) -> int:
    async with db.reading(seen_from=seen_from) as tx:
        return await tx.only_value(
            SQL["count_decisions"], int, since=wish.since, client=wish.client, project=wish.project, most=wish.most
        )


async def _load_portions(
    db: Database, settings: QualifierSettings, wish: DecisionReplayWish, seen_from: Viewpoint | None
) -> AsyncIterator[tuple[list[_Job], int]]:
    """Jobs, and how many items of the portion have no words any more."""
    since, after, left = wish.since, 0, wish.most
    while left > 0:
        async with db.reading(seen_from=seen_from) as tx:
            decisions = await tx.all(
                SQL["portion_of_decisions"],
                Decision,
                since=since,
                after=after,
                client=wish.client,
                project=wish.project,
                limit=min(PORTION, left),
            )
            if not decisions:
                return
            ids, read = [one.item for one in decisions], find_documents_read(decisions)
            texts = {one.item.id: one for one in await load_item_texts(tx, ids, read)}
            customs = await load_customs(tx, [one.item.client for one in texts.values()])
        jobs = [_make_job(one, texts[one.item], customs, settings) for one in decisions if one.item in texts]
        left -= len(decisions)
        since, after = decisions[-1].decided_at, decisions[-1].id
        yield jobs, len(decisions) - len(jobs)


def _make_job(one: Decision, text: ItemText, customs: Customs, settings: QualifierSettings) -> _Job:
    item = text.item
    terms = customs.find_terms(item.client, item.project, settings, one.decided_at)
    return _Job(
        one.id,
        item.id,
        item.title,
        item.client,
        item.project,
        one.decided_at,
        _read_outcome(one),
        one.digest,
        word_item(text, terms.me),
        terms,
        read_inputs(one),
    )


def _read_outcome(one: Decision) -> ReplayedOutcome:
    return ReplayedOutcome(one.route, one.urgency, one.deadline, one.scheduled_at, one.target, one.assign)


# --- in a child process


def decide_again(jobs: Sequence[_Job]) -> list[DecisionDifference]:
    """The items among these that would be decided otherwise today."""
    return [found for job in jobs if (found := _compare(job)) is not None]


def _compare(job: _Job) -> DecisionDifference | None:
    """The moment, the other items, the LLM's advice and the decision before are those of the past."""
    known = job.inputs
    wording = replace(
        job.wording,
        is_whole=known.is_whole,
        is_due=known.is_due,
        is_awaited=known.is_awaited,
        deadline=known.deadline,
        urgency=known.urgency,
    )
    case = replace(
        make_case(wording, job.terms),
        known=known.known,
        advice=known.advice,
        is_silent=known.is_silent,
        former=known.former,
    )
    verdict = decide(case)
    now = _sum_up(verdict)
    if _is_same(job.was, now):
        return None
    other = wording.digest != job.digest
    return DecisionDifference(
        job.item, job.title, job.client, job.project, job.decided_at, job.was, now, verdict.path, other
    )


def _sum_up(verdict: ItemVerdict) -> ReplayedOutcome:
    route = verdict.route
    return ReplayedOutcome(route.to, route.urgency, route.deadline, route.scheduled_at, route.into, verdict.assign)


def _is_same(was: ReplayedOutcome, now: ReplayedOutcome) -> bool:
    plain = (was.route, was.urgency, was.target, was.assign) == (now.route, now.urgency, now.target, now.assign)
    return plain and _same_time(was.deadline, now.deadline) and _same_time(was.scheduled_at, now.scheduled_at)


def _same_time(one: datetime | None, other: datetime | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) < SAME_TIME


def describe_report(report: ReplayReport) -> dict[str, Any]:
    """The report as the result of a task."""
    return {
        "since": report.since.isoformat(),
        "looked_at": report.looked_at,
        "unreadable": report.unreadable,
        "changed": report.changed,
        "lowered": report.lowered,
        "kinds": dict(report.kinds.most_common()),
        "differences": [describe_difference(one) for one in report.differences],
    }


def describe_difference(one: DecisionDifference) -> dict[str, Any]:
    return {
        "item": one.item,
        "title": one.title,
        "client": one.client,
        "project": one.project,
        "decided_at": one.decided_at.isoformat(),
        "was": _describe_outcome(one.was),
        "now": _describe_outcome(one.now),
        "because": [step.sentence for step in one.because],
        "is_other_text": one.is_other_text,
    }


def _describe_outcome(one: ReplayedOutcome) -> dict[str, Any]:
    return {
        "route": one.route,
        "urgency": one.urgency,
        "deadline": one.deadline.isoformat() if one.deadline else None,
        "scheduled_at": one.scheduled_at.isoformat() if one.scheduled_at else None,
        "target": one.target,
        "assign": one.assign,
    }
