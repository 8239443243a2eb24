"""Says why a task is where it is, in one sentence: facts gathered in one query, explained by pure functions."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from gristmill.db import Tx, queries
from gristmill.durations import format_duration
from gristmill.errors import Unknown
from gristmill.ids import TaskId, WorkerId
from gristmill.queue.letters import to_json
from gristmill.queue.rates import RecentStarts, free_starts, rate_of

SQL = queries("gristmill.queue.operate", "why.sql")
MOST = 10_000  # where counting who is ahead stops


@dataclass(frozen=True)
class Why:
    """`state` is one word for machines, `sentence` one sentence for people, `facts` what it was concluded from."""

    id: TaskId
    state: str
    sentence: str
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class TaskFacts:
    """Everything that decides why a task is where it is; `head` is the task before it in its series."""

    now: datetime
    id: TaskId
    queue: str | None
    kind: str
    status: str
    wait: str | None
    created_at: datetime
    run_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    attempts: int
    max_attempts: int | None
    suspect: bool | None
    cancel_requested: bool | None
    result: Any
    error: str | None
    fingerprint: str | None
    progress_current: int | None
    progress_total: int | None
    progress_message: str | None
    serial_key: str | None
    worker: WorkerId | None
    worker_name: str | None
    worker_state: str | None
    heartbeat_at: datetime | None
    lease_expires_at: datetime | None
    after: TaskId | None
    after_status: str | None
    after_error: str | None
    head: TaskId | None
    head_status: str | None
    paused: bool | None
    concurrency: int | None
    rate_count: int | None
    rate_period: timedelta | None
    recent_at: list[datetime] | None
    recent_n: list[int] | None
    breaker_state: str | None
    breaker_since: datetime | None
    breaker_until: datetime | None
    breaker_reason: str | None
    ahead: int | None
    running: int | None
    workers: int
    solos: int
    sealed: bool | None
    pending: int | None
    processing: int | None
    completed: int | None
    failed: int | None
    skipped: int | None
    cancelled: int | None
    failing: list[TaskId]


async def why(tx: Tx, task: TaskId) -> Why:
    facts = await tx.one(SQL["facts"], TaskFacts, id=task, most=MOST)
    if facts is None:
        raise Unknown(f"There is no task {task}.")
    return explain(facts)


def explain(facts: TaskFacts) -> Why:
    """The same facts, the same answer: no clock but `facts.now`."""
    if facts.queue is None:
        state, sentence = _group(facts)
    elif facts.finished_at is not None:
        state, sentence = _explain_end(facts)
    elif facts.status == "processing":
        state, sentence = _running(facts)
    elif facts.wait is not None:
        state, sentence = _waiting(facts)
    else:
        state, sentence = _explain_line(facts)
    known = {name: value for name, value in vars(facts).items() if value is not None and value != []}
    return Why(facts.id, state, sentence, known)


Reason = tuple[str, str]


def _explain_end(f: TaskFacts) -> Reason:
    when = f"{_ago(f, f.finished_at)}"
    by = f" by {_worker(f)}" if f.worker is not None else ""
    match f.status:
        case "completed":
            result = f", with the result {_short(f.result)}" if f.result is not None else ""
            return "done", f"done {when}{by}{result}"
        case "skipped":
            return "skipped", f"skipped {when}{by}: {f.error}"
        case "cancelled":
            return "cancelled", f"cancelled {when}: {f.error}"
        case _:
            return "dead", f"dead since {_at(f.finished_at)} after {_times(f.attempts)}: {f.error}"


def _running(f: TaskFacts) -> Reason:
    asked = "; it has been asked to stop" if f.cancel_requested else ""
    expired = f.lease_expires_at is None or f.lease_expires_at < f.now
    if f.worker_state not in ("live", "stopping") or expired:
        heard = f"was last heard of {_ago(f, f.heartbeat_at)}" if f.heartbeat_at else "is not known any more"
        return "stale", f"held by {_worker(f)}, which {heard}: it will be taken back from it shortly{asked}"
    since = f"running since {_at(f.started_at)} by {_worker(f)}"
    return "running", f"{since}, attempt {_attempt(f)}, last heartbeat {_ago(f, f.heartbeat_at)}{_progress(f)}{asked}"


def _progress(f: TaskFacts) -> str:
    if f.progress_current is None:
        return ""
    total = f" of {f.progress_total}" if f.progress_total is not None else ""
    message = f" ({f.progress_message})" if f.progress_message else ""
    return f", {f.progress_current}{total} done{message}"


def _waiting(f: TaskFacts) -> Reason:
    match f.wait:
        case "time" if f.run_at and f.run_at <= f.now and (unserved := _explain_no_worker(f)):
            return unserved  # no worker is there to let it in
        case "time" if f.error and f.fingerprint is None:
            return "snoozed", f"snoozed until {_at(f.run_at)}: {f.error}"
        case "time" if f.attempts and f.error:
            return "backing off", f"backing off until {_at(f.run_at)} after attempt {_attempt(f)} failed: {f.error}"
        case "time":
            return "scheduled", f"scheduled for {_at(f.run_at)}, in {_span((f.run_at or f.now) - f.now)}"
        case "after":
            return "blocked", _explain_block(f)
        case _:
            behind = f" behind task {f.head}, which is {f.head_status}" if f.head is not None else ""
            return "in series", f"waits its turn in the series “{f.serial_key}”{behind}"


def _explain_block(f: TaskFacts) -> str:
    if f.after_status == "failed":
        error = f.after_error or "see its children"
        return f"blocked by task {f.after}, which is dead ({error}): retry or cancel that one"
    return f"blocked by task {f.after}, which is {f.after_status}"


def _explain_line(f: TaskFacts) -> Reason:
    """Held back by everybody's limits first, then by nobody working, then by its own limits, then by the line."""
    for held in (_explain_pause, _explain_breaker, _explain_suspect, _explain_no_worker, _explain_rate, _explain_limit):
        answer = held(f)
        if answer:
            return answer
    workers = f"{f.workers} worker{'s serve' if f.workers != 1 else ' serves'} this queue"
    trial = "; its breaker is half-open: one task at a time may try" if f.breaker_state != "closed" else ""
    if f.ahead == 0:
        return "queued", f"next in line in {f.queue}; {workers}{trial}"
    return "queued", f"queued in {f.queue} behind {_ahead(f)}; {workers}{trial}"


def _explain_pause(f: TaskFacts) -> Reason | None:
    if not f.paused:
        return None
    return "paused", f"the queue {f.queue} is paused: resume it with gristmill queue resume {f.queue}"


def _explain_breaker(f: TaskFacts) -> Reason | None:
    if f.breaker_state != "open" or f.breaker_until is None or f.breaker_until <= f.now:
        return None
    reason = f" because {f.breaker_reason}" if f.breaker_reason else ""
    since = f"the breaker of {f.queue} is open since {_at(f.breaker_since)}{reason}"
    return "breaker open", f"{since}; one task may try from {_at(f.breaker_until)} on"


def _explain_suspect(f: TaskFacts) -> Reason | None:
    if not f.suspect:
        return None
    last = "it was running when a worker died, so it waits to be run alone"
    if f.solos == 0 and f.workers == 0:
        return "suspect", f"{last}; no worker serves this queue: start one with gristmill worker --queues {f.queue}"
    return "suspect", f"{last}, behind {_ahead(f)}" if f.ahead else last


def _explain_no_worker(f: TaskFacts) -> Reason | None:
    if f.workers:
        return None
    return "no worker", f"no worker serves this queue: start one with gristmill worker --queues {f.queue}"


def _explain_rate(f: TaskFacts) -> Reason | None:
    rate = rate_of(f.rate_count, f.rate_period)
    if rate is None:
        return None
    recent = RecentStarts(tuple(f.recent_at or ()), tuple(f.recent_n or ()))
    starts, until = free_starts(rate, recent, f.now)
    if starts or until is None:
        return None
    limit = f"{rate.count} starts within {format_duration(rate.period)}"
    return "rate-limited", f"rate-limited until {_at(until)} ({limit} in {f.queue}), behind {_ahead(f)}"


def _explain_limit(f: TaskFacts) -> Reason | None:
    if f.concurrency is None or f.running is None or f.running < f.concurrency:
        return None
    limit = f"as many of {f.queue} run as may run at once ({f.running} of {f.concurrency})"
    return "at its limit", f"{limit}; behind {_ahead(f)}"


def _group(f: TaskFacts) -> Reason:
    done = (f.completed or 0) + (f.skipped or 0)
    failed = f.failed or 0
    total = done + (f.pending or 0) + (f.processing or 0) + failed + (f.cancelled or 0)
    parts = [f"{done} of {total} children done"]
    parts += [f"{n} {name}" for name, n in (("running", f.processing), ("cancelled", f.cancelled)) if n]
    if failed:
        named = ", ".join(str(id_) for id_ in f.failing)
        parts.append(f"{failed} failed ({named}{', …' if failed > len(f.failing) else ''})")
    if f.finished_at is None and not f.sealed:
        parts.append("not sealed yet, so more may come")
    state = "done" if f.status == "completed" else "dead" if f.status == "failed" else f.status
    return state, f"a group, {f.status}: {'; '.join(parts)}"


def _ahead(f: TaskFacts) -> str:
    ahead = f.ahead or 0
    if ahead > MOST:
        return f"more than {MOST:,} others"
    return f"{ahead:,} other{'' if ahead == 1 else 's'}"


def _attempt(f: TaskFacts) -> str:
    return f"{f.attempts} of {f.max_attempts}" if f.max_attempts is not None else f"{f.attempts} of as many as it takes"


def _times(n: int) -> str:
    return f"{n} attempt{'' if n == 1 else 's'}"


def _worker(f: TaskFacts) -> str:
    return f"worker {f.worker}" + (f" on {f.worker_name}" if f.worker_name else "")


def _short(value: Any) -> str:
    text = to_json(value)
    return text if len(text) <= 80 else text[:79] + "…"


def _at(moment: datetime | None) -> str:
    if moment is None:
        return "an unknown time"
    return moment.isoformat(sep=" ", timespec="seconds")


def _ago(f: TaskFacts, moment: datetime | None) -> str:
    if moment is None:
        return "at an unknown time"
    return f"{_span(f.now - moment)} ago"


def _span(value: timedelta) -> str:
    return (
        format_duration(timedelta(seconds=round(value.total_seconds())))
        if value >= timedelta(seconds=1)
        else "a moment"
    )
