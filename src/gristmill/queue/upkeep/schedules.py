"""Schedules: letters that are sent at set times, once, or some time after another schedule."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, ClassVar

from gristmill.db import Tx, queries
from gristmill.errors import Refused, Unknown
from gristmill.ids import ScopeId, TaskId
from gristmill.queue.letters import Envelope, Letter, encode, lane, queue_of, to_json
from gristmill.queue.send import MAX_PAYLOAD, NAME, ensure_queues
from gristmill.queue.send import SQL as SEND
from gristmill.queue.sender import find_sender
from gristmill.queue.upkeep.cron import check_zone, parse
from gristmill.queue.upkeep.runs import note_run
from gristmill.scopes import GLOBAL_ID

SQL = queries("gristmill.queue.upkeep", "schedules.sql")

Posted = tuple[str, str, Mapping[str, Any]]  # kind, queue, payload


@dataclass(frozen=True)
class Schedule:
    """One row of the table `schedule`; `payload` is JSON text."""

    name: str
    kind: str
    queue: str
    payload: str
    cron: str | None = None
    zone: str = "UTC"
    once_at: datetime | None = None
    follows: str | None = None
    delay: timedelta | None = None
    enabled: bool = True
    next_at: datetime | None = None
    last_at: datetime | None = None
    last_task: TaskId | None = None
    created_at: datetime | None = None
    scope: ScopeId = GLOBAL_ID  # whose tasks it sends
    patient: bool = False  # it sends nothing while its last task still waits

    @property
    def timing(self) -> tuple[object, ...]:
        return self.cron, self.zone, self.once_at, self.follows, self.delay

    def next(self, now: datetime) -> datetime | None:
        """When it runs next by itself: a follower waits to be told."""
        return parse(self.cron, self.zone).next(now) if self.cron else self.once_at


@dataclass(frozen=True)
class Fired:
    """A run: `due` is when it should have been, `at` when it was; `problem` is why there will be no other."""

    name: str
    task: TaskId
    due: datetime
    at: datetime
    next_at: datetime | None
    problem: str | None = None


async def add_schedule(
    tx: Tx,
    name: str,
    letter: Letter | Posted,
    *,
    cron: str | None = None,
    zone: str = "UTC",
    once_at: datetime | None = None,
    follows: str | None = None,
    delay: timedelta | None = None,
    replace: bool = False,
    scope: ScopeId | None = None,
    patient: bool = False,
) -> None:
    """Send this letter at `cron`, at `once_at` (if that has passed: now), or `delay` after another schedule.

    Its tasks belong to `scope`, without it to the scope of the sender; a name means one schedule of a scope.
    Replacing keeps the history and whether it is enabled. While its times stay the same it keeps its next run
    too, so that a program that states its schedules at every start loses nothing it missed while it was off.
    With `patient`, a run is left out while the task of the last one still waits for a worker.
    """
    own = await _scope_of(tx, scope)
    kind, queue, payload = _unpack_letter(letter)
    if follows is not None:
        delay = delay or timedelta(0)
    wanted = Schedule(name, kind, queue, payload, cron, zone, once_at, follows, delay)
    _check(wanted)
    await tx.one(SQL["lock"])
    if follows is not None:
        await _check_leader(tx, own, name, follows)
    old = await _find(tx, own, name)
    if old and not replace:
        raise Refused(f"There is already a schedule “{name}”: replace it, or choose another name.")
    enabled, next_at = await _next_state(tx, old, wanted)
    await tx.execute(
        SQL["write"],
        name=name,
        kind=kind,
        queue=queue,
        scope=own,
        payload=payload,
        cron=cron,
        zone=zone,
        once_at=once_at,
        follows=follows,
        delay=delay,
        enabled=enabled,
        next_at=next_at,
        patient=patient,
    )
    await tx.one(SQL["tell"])


async def remove_schedule(tx: Tx, name: str, *, cascade: bool = False, scope: ScopeId | None = None) -> list[str]:
    """Remove a schedule, and with `cascade` all that follow it; the names of those removed."""
    own = await _scope_of(tx, scope)
    await tx.one(SQL["lock"])
    await _get_schedule(tx, own, name)
    followers = await tx.values(SQL["followers"], str, scope=own, name=name)
    if followers and not cascade:
        raise Refused(f"The schedule “{name}” is followed by {', '.join(followers)}: remove those first, or all.")
    await tx.execute(SQL["remove"], scope=own, name=name)  # the table takes the followers along
    return [name, *followers]


async def enable_schedule(tx: Tx, name: str, enabled: bool, *, scope: ScopeId | None = None) -> None:
    """Let it fire, from its next run after now; or let it rest."""
    own = await _scope_of(tx, scope)
    await tx.one(SQL["lock"])
    schedule = await _get_schedule(tx, own, name)
    if schedule.enabled == enabled:
        return  # and a missed run stays missed, to be fired
    now = await tx.only_value(SQL["now"], datetime)
    if enabled and schedule.once_at and schedule.once_at <= now:
        raise Refused(f"The time of “{name}” has passed: give it a new one, or run it now.")
    next_at = schedule.next(now) if enabled else None
    await tx.execute(SQL["enable"], scope=own, name=name, enabled=enabled, next_at=next_at)
    await tx.one(SQL["tell"])


async def run_schedule(tx: Tx, name: str, *, scope: ScopeId | None = None) -> TaskId:
    """Send its letter now, also if it is disabled; its next run stays where it is, and nothing follows it."""
    own = await _scope_of(tx, scope)
    await tx.one(SQL["lock"])
    schedule = await _get_schedule(tx, own, name)
    task = await _post(tx, schedule)
    await tx.execute(SQL["ran"], scope=own, name=name, task=task)
    await note_run(tx, own, name, task)
    return task


async def list_schedules(tx: Tx) -> list[Schedule]:
    """All of them, the next to run first."""
    return await tx.all(SQL["all"], Schedule)


async def next_fire(tx: Tx) -> timedelta | None:
    """How long until a schedule is due: zero if one is, None if none ever will be."""
    return await tx.value(SQL["next_fire"], timedelta)


async def fire(tx: Tx, *, limit: int = 20) -> list[Fired]:
    """Send what is due, in this transaction: of any number of schedulers, one fires each run.

    However many runs were missed, one is fired; the next is the first after now.
    """
    await tx.one(SQL["lock_if_due"])
    due = await tx.all(SQL["due"], Schedule, n=limit)
    if not due:
        return []
    now = await tx.only_value(SQL["now"], datetime)
    fired = [await _fire(tx, schedule, now) for schedule in due]
    return [one for one in fired if one is not None]


async def _fire(tx: Tx, schedule: Schedule, now: datetime) -> Fired | None:
    due = schedule.next_at or now
    problem = next_at = None
    try:
        # a follower waits for its leader, a one-shot is over; a clock that went back repeats nothing
        next_at = schedule.next(max(now, due)) if schedule.cron else None
    except Refused as refused:  # a time zone that went away must not stop all the others
        problem = str(refused)
    enabled = problem is None and schedule.once_at is None
    which = {"scope": schedule.scope, "name": schedule.name}
    if schedule.patient and await tx.value(SQL["still_waits"], task=schedule.last_task):
        await tx.execute(SQL["enable"], **which, enabled=enabled, next_at=next_at)
        return None
    task = await _post(tx, schedule)
    await tx.execute(SQL["fired"], **which, now=now, task=task, next_at=next_at, enabled=enabled)
    await tx.execute(SQL["follow"], **which, now=now)
    await note_run(tx, schedule.scope, schedule.name, task, due=due, problem=problem)
    return Fired(schedule.name, task, due, now, next_at, problem)


class _Plain:
    """A letter with nothing on the outside."""

    kind: ClassVar[str] = "schedule"


LANE = lane(Envelope(_Plain()))


async def _post(tx: Tx, schedule: Schedule) -> TaskId:
    """The letter is sent as it was stored: who runs the scheduler need not know its class."""
    await ensure_queues(tx, [schedule.queue])
    (task,) = await tx.only_value(
        SEND["enqueue_alike"],
        list[TaskId],
        payloads=f"[{schedule.payload}]",
        queue=schedule.queue,
        kind=schedule.kind,
        lane=LANE,
        priority=0,
        foreground=False,
        parent=None,
        scope=schedule.scope,
        max_attempts=None,
        owner=None,
    )
    return task


def _unpack_letter(letter: Letter | Posted) -> tuple[str, str, str]:
    if isinstance(letter, tuple):
        kind, queue, payload = letter
        body = to_json(payload)
        if len(body.encode()) > MAX_PAYLOAD:
            raise Refused(f"The payload of {len(body):,} bytes is too large (limit {MAX_PAYLOAD:,}).")
        return kind, queue, body
    return letter.kind, queue_of(letter), encode(letter, MAX_PAYLOAD).decode()


def _check(schedule: Schedule) -> None:
    for what, name in (("schedule", schedule.name), ("queue", schedule.queue)):
        if not NAME.fullmatch(name):
            raise Refused(f"“{name}” cannot be the name of a {what}: use up to 63 of a-z, 0-9, dot, dash, underscore.")
    if schedule.kind == "group":
        raise Refused("A group cannot be scheduled: send a letter that opens one.")
    given = [one for one in (schedule.cron, schedule.once_at, schedule.follows) if one is not None]
    if len(given) != 1:
        raise Refused(f"“{schedule.name}” needs one of cron, once_at and follows, not {len(given)}.")
    _check_times(schedule)


def _check_times(schedule: Schedule) -> None:
    check_zone(schedule.zone)
    if schedule.cron is not None:
        parse(schedule.cron, schedule.zone)
    if schedule.once_at is not None and schedule.once_at.tzinfo is None:
        raise Refused("once_at needs a time zone, or nobody knows when it is.")
    if schedule.delay is not None and schedule.follows is None:
        raise Refused(f"“{schedule.name}” has a delay but follows nothing.")
    if schedule.delay is not None and schedule.delay < timedelta(0):
        raise Refused("A delay cannot be negative: nothing runs before what it follows.")


async def _scope_of(tx: Tx, scope: ScopeId | None) -> ScopeId:
    return await find_sender(tx) if scope is None else scope


async def _check_leader(tx: Tx, scope: ScopeId, name: str, follows: str) -> None:
    leaders = await tx.values(SQL["leaders"], str, scope=scope, name=follows)
    if name == follows:
        raise Refused(f"“{name}” cannot follow itself.")
    if not leaders:
        await _get_schedule(tx, scope, follows)
    if name in leaders:
        way = " → ".join([name, *leaders[: leaders.index(name) + 1]])
        raise Refused(f"“{name}” cannot follow “{follows}”, which follows it: {way}.")


async def _next_state(tx: Tx, old: Schedule | None, wanted: Schedule) -> tuple[bool, datetime | None]:
    """Whether it is enabled and when it runs next, given what it was before."""
    if old and old.timing == wanted.timing:
        return old.enabled, old.next_at
    # a one-shot is disabled by having fired: a new time is meant to be kept
    enabled = old is None or old.enabled or wanted.once_at is not None
    return enabled, wanted.next(await tx.only_value(SQL["now"], datetime)) if enabled else None


async def _find(tx: Tx, scope: ScopeId, name: str) -> Schedule | None:
    return await tx.one(SQL["one"], Schedule, scope=scope, name=name)


async def _get_schedule(tx: Tx, scope: ScopeId, name: str) -> Schedule:
    schedule = await _find(tx, scope, name)
    if schedule is None:
        near = get_close_matches(name, await tx.values(SQL["names"], str, scope=scope), n=2)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise Unknown(f"There is no schedule “{name}”.{hint}")
    return schedule
