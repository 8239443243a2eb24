"""What the doctor asks about the queues: workers, breakers, dead letters."""

from collections.abc import Sequence
from typing import NamedTuple

from gristmill.db import Tx, queries
from gristmill.queue.operate import dead
from gristmill.queue.operate.queues import QueueReport, list_queues
from gristmill.settings import QueueSettings
from gristmill.telemetry import Check
from gristmill.wording import format_count

SQL = queries("gristmill.queue.operate", "checks.sql")


class WorkerCounts(NamedTuple):
    """How many workers live, are silent, and were lost within the last hour."""

    live: int
    silent: int
    lost: int


async def examine_queues(tx: Tx, settings: QueueSettings) -> list[Check]:
    reports = await list_queues(tx)
    (workers,) = await tx.all(SQL["workers"], WorkerCounts)
    return [
        judge_workers(workers, reports),
        judge_breakers(reports),
        judge_dead_letters(await dead.stats(tx, threshold=settings.dead_alert), settings.dead_alert),
    ]


def explain_standstill(one: QueueReport) -> str | None:
    """Why no task of a queue runs though some wait."""
    if one.breaker and one.breaker.state == "open":
        return f"its breaker is open ({one.breaker.reason}) until {one.breaker.until:%H:%M:%S}"
    if one.paused and one.waiting.n:
        return f"it is paused: gristmill queue resume {one.name}"
    if one.waiting.n and not one.workers:
        return f"no worker serves it: gristmill worker --queues {one.name}"
    return None


# --- judgements


def judge_workers(row: WorkerCounts, reports: Sequence[QueueReport]) -> Check:
    sentence = f"{row.live} live, {row.silent} silent, {row.lost} lost within the last hour."
    unserved = [one.name for one in reports if one.waiting.n and not one.workers and not one.paused]
    if unserved:
        return Check(
            "workers",
            "warn",
            f"{sentence[:-1]}; tasks wait where nobody serves: {', '.join(unserved)}.",
            f"Run gristmill worker, or for these alone gristmill worker --queues {','.join(unserved)}.",
        )
    if row.silent:
        return Check("workers", "warn", sentence, "Their tasks are taken back as soon as any worker runs.")
    if row.lost:
        return Check("workers", "warn", sentence, "Look at their logs and at gristmill dead clusters.")
    return Check("workers", "ok", sentence)


def judge_breakers(reports: Sequence[QueueReport]) -> Check:
    open_ = [one for one in reports if one.breaker and one.breaker.state != "closed"]
    if not open_:
        return Check("breakers", "ok", "No breaker is open.")
    reasons = "; ".join(f"{one.name}: {explain_standstill(one) or 'its breaker is half-open'}" for one in open_)
    return Check("breakers", "warn", f"{reasons}.", "Mend what these queues call; they try again by themselves.")


def judge_dead_letters(stats: dead.DeadStats, threshold: int) -> Check:
    sentence = f"{format_count(stats.total, 'dead letter')}; {threshold} raise an alarm."
    if stats.alert:
        return Check("dead letters", "warn", sentence, "Run gristmill dead clusters, mend the cause, then dead replay.")
    return Check("dead letters", "ok", sentence)
