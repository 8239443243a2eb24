"""What alarms ask about queues: dead letters, depth, open breakers, and stages that stand still, with the reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gristmill.db import Tx, queries
from gristmill.durations import format_duration
from gristmill.ids import ScopeId, WorkerId
from gristmill.queue.rates import RecentStarts, free_starts, rate_of
from gristmill.scopes import GLOBAL_ID
from gristmill.telemetry import Finding
from gristmill.wording import format_count

SQL = queries("gristmill.queue.operate", "alarms.sql")
MOST = 10_000  # where counting stops
DEAD_LETTERS, DEPTH, BREAKER = "dead-letters", "queue-depth", "breaker-open"
STALLED, STARVED, IDLE = "stage-stalled", "stage-starved", "worker-idle"
QUEUE_RULES = (DEAD_LETTERS, DEPTH, BREAKER, STALLED, STARVED, IDLE)


@dataclass(frozen=True)
class Thresholds:
    """From where on somebody is told."""

    dead: int = 10
    depth: int = 1_000
    idle: timedelta = timedelta(minutes=10)
    stall: timedelta = timedelta(minutes=5)


@dataclass(frozen=True)
class Stage:
    """How a queue stands at `now`; `settled` counts everything that ever ended in it."""

    name: str
    paused: bool
    concurrency: int | None
    rate_count: int | None
    rate_period: timedelta | None
    recent_at: list[datetime]
    recent_n: list[int]
    breaker_state: str
    breaker_since: datetime | None
    breaker_reason: str | None
    breaker_until: datetime | None
    now: datetime
    ready: int
    suspects: int
    later: int
    running: int
    settled: int
    workers: int

    @property
    def waiting(self) -> int:
        """Tasks that could run now."""
        return self.ready + self.suspects


@dataclass(frozen=True)
class IdleWorker:
    """A worker that lives and holds no task."""

    id: WorkerId
    name: str
    queues: list[str]
    settled: int


@dataclass(frozen=True)
class DeadCount:
    """How many dead letters a client has."""

    scope: ScopeId
    n: int


async def find_queue_troubles(tx: Tx, thresholds: Thresholds) -> list[Finding]:
    stages = await tx.all(SQL["stages"], Stage, most=MOST)
    idle = await tx.all(SQL["idle_workers"], IdleWorker)
    dead = await tx.all(SQL["dead_letters"], DeadCount, most=MOST)
    return [
        *find_dead_letters(dead, thresholds.dead),
        *(finding for stage in stages for finding in judge_stage(stage, thresholds)),
        *find_idle_workers(idle, stages, thresholds.idle),
    ]


# --- judgements


def find_dead_letters(counts: Sequence[DeadCount], threshold: int) -> list[Finding]:
    """For the operator all of them; for each client its own, which the operator has been told of."""
    total = sum(one.n for one in counts)
    advice = "Run gristmill dead clusters, mend the cause, then gristmill dead replay."
    findings = [Finding(DEAD_LETTERS, "all", _count_dead(total), advice)] if total > threshold else []
    own = [one for one in counts if one.scope != GLOBAL_ID and one.n > threshold]
    return findings + [
        Finding(DEAD_LETTERS, "own", _count_dead(one.n), advice, scope=one.scope, quiet=True) for one in own
    ]


def _count_dead(n: int) -> str:
    return f"{'At least ' if n >= MOST else ''}{format_count(n, 'dead letter')} wait for somebody to look at them."


def judge_stage(stage: Stage, thresholds: Thresholds) -> list[Finding]:
    return [
        *_find_depth(stage, thresholds.depth),
        *_find_open_breaker(stage),
        *_find_standstill(stage, thresholds),
    ]


def _find_depth(stage: Stage, threshold: int) -> list[Finding]:
    waiting = stage.waiting + stage.later
    if waiting <= threshold:
        return []
    more = "More than " if waiting >= MOST else ""
    sentence = f"{more}{format_count(min(waiting, MOST), 'task')} wait in {stage.name}; {threshold:,} are the limit."
    return [Finding(DEPTH, stage.name, sentence, f"Start more workers, or see gristmill queue show {stage.name}.")]


def _find_open_breaker(stage: Stage) -> list[Finding]:
    if stage.breaker_state == "closed":
        return []
    reason = f": {stage.breaker_reason}" if stage.breaker_reason else ""
    sentence = f"The breaker of {stage.name} is {stage.breaker_state}{reason}."
    return [Finding(BREAKER, stage.name, sentence, "Mend what this queue calls; it tries again by itself.")]


def _find_standstill(stage: Stage, thresholds: Thresholds) -> list[Finding]:
    """Work waits, and nothing moves: starved if something holds it back, stalled if nothing does."""
    if not stage.waiting:
        return []
    starved = explain_starvation(stage)
    if starved:
        why, advice = starved
        sentence = f"{format_count(stage.waiting, 'task')} wait in {stage.name}, and none ran for"
        sentence += f" {format_duration(thresholds.idle)}: {why}."
        return [_say(STARVED, stage, sentence, advice, thresholds.idle)]
    sentence = f"{stage.name} is stalled: {format_count(stage.waiting, 'task')} wait, {stage.running} run,"
    sentence += f" and none ended for {format_duration(thresholds.stall)}."
    advice = f"Nothing holds it back: look at gristmill task list --queue {stage.name} and at the logs of its workers."
    return [_say(STALLED, stage, sentence, advice, thresholds.stall)]


def _say(rule: str, stage: Stage, sentence: str, advice: str, lasting: timedelta) -> Finding:
    return Finding(rule, stage.name, sentence, advice, lasting=lasting, mark=str(stage.settled))


def explain_starvation(stage: Stage) -> tuple[str, str] | None:
    """What holds a queue back, and what would let it go; None if nothing does."""
    if stage.paused:
        return "it is paused", f"Run gristmill queue resume {stage.name}."
    if stage.breaker_state == "open" and stage.breaker_until and stage.breaker_until > stage.now:
        return f"its breaker is open until {stage.breaker_until:%H:%M:%S}", "Mend what this queue calls."
    if not stage.workers:
        return "no worker serves it", f"Run gristmill worker --queues {stage.name}."
    if until := find_next_start(stage):
        rate = f"{stage.rate_count}/{format_duration(stage.rate_period)}" if stage.rate_period else ""
        return f"it is rate-limited ({rate}) until {until:%H:%M:%S}", f"See gristmill queue set {stage.name} --rate."
    return None


def find_next_start(stage: Stage) -> datetime | None:
    """When the rate of a queue lets its next task start; None if that is now."""
    rate = rate_of(stage.rate_count, stage.rate_period)
    if rate is None:
        return None
    starts, until = free_starts(rate, RecentStarts(tuple(stage.recent_at), tuple(stage.recent_n)), stage.now)
    return None if starts else until


def find_idle_workers(idle: Sequence[IdleWorker], stages: Sequence[Stage], lasting: timedelta) -> list[Finding]:
    """Workers that hold nothing although a queue that they serve has work and nothing holds it back."""
    free = {one.name: one for one in stages if one.waiting and not explain_starvation(one) and not _is_full(one)}
    return [
        _describe_idle(worker, [name for name in worker.queues if name in free], lasting)
        for worker in idle
        if any(name in free for name in worker.queues)
    ]


def _is_full(stage: Stage) -> bool:
    return stage.concurrency is not None and stage.running >= stage.concurrency


def _describe_idle(worker: IdleWorker, queues: Sequence[str], lasting: timedelta) -> Finding:
    sentence = f"Worker {worker.id} on {worker.name} did nothing for {format_duration(lasting)}, although work waits in"
    sentence += f" {', '.join(queues[:5])}."
    advice = "Look at its log, and start it again: its tasks are given to others."
    return Finding(IDLE, f"worker {worker.id}", sentence, advice, lasting=lasting, mark=str(worker.settled))
