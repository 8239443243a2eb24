"""Claims tasks: as many as can start, from every queue that has some, people first."""

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from operator import itemgetter
from typing import NamedTuple

from gristmill.db import Connection, Tx, array, queries
from gristmill.ids import WorkerId
from gristmill.queue.claim import Claim
from gristmill.queue.config import QueueConfig, QueueLimits, lock_limits
from gristmill.queue.rates import free_starts, remember_starts
from gristmill.queue.upkeep.breaker import half_open
from gristmill.queue.worker.give_back import give_back_leases
from gristmill.queue.worker.lane_marks import Lane, LaneMarks
from gristmill.queue.worker.plans import PLANNED_ONCE
from gristmill.queue.worker.workload import Workload

SQL = queries("gristmill.queue.worker", "claimer.sql")

# a claim that a crash of the server forgets is only claimed again
CLAIM_SESSION = {"synchronous_commit": "off", **PLANNED_ONCE}


class _LaneHead(NamedTuple):
    """The first ready ticket of a lane."""

    queue: str
    lane: int
    seq: int


class Claimer:
    """Claims for one worker, within the limits of each queue."""

    def __init__(
        self,
        worker: WorkerId,
        workload: Workload,
        lane_marks: LaneMarks,
        share: Callable[[str], int],
        *,
        solo: bool = False,
        batch_size: Callable[[str], int] = lambda _: 1,
        unsupervised: bool = False,
    ) -> None:
        self._worker = worker
        self._workload = workload
        self._lane_marks = lane_marks
        self._share = share
        self._batch_size = batch_size  # how many tasks of a queue fill a slot
        self._solo = solo
        self._unsupervised = unsupervised  # no supervisor runs suspects for us
        self._looked = False  # before the first look at all lanes, an empty claim means nothing
        self._lease = 0
        self._turn = 0
        self._under_way: set[int] = set()  # claims whose answer has not arrived yet
        self._unacknowledged: set[int] = set()  # claims whose answer was lost: they may have been made
        self.held_back: set[str] = set()  # queues whose limits gave nothing when they were last asked

    async def claim(self, connection: Connection, configs: Sequence[QueueConfig], n: int) -> list[Claim]:
        """What `n` slots can take, people first: the queues that hold the foremost lane are asked before the others."""
        self.held_back.clear()  # else a queue whose limits were removed would stay in it
        if self._solo:
            return await self._claim_suspect(connection, configs)
        await self._delete_spent_leases(connection)
        self._workload.alone = False
        claims: list[Claim] = []
        for portion in self._portions([config for config in configs if not config.paused]):
            if (left := n - self._slots(claims)) <= 0:
                break
            claims += await self._claim_portion(connection, portion, left)
        if not claims and self._unsupervised and self._looked and self._workload.empty:
            # no supervisor runs suspects here: take one now, while nothing else runs
            claims = await self._claim_suspect(connection, configs)
            self._workload.alone = bool(claims)
        return claims

    def _portions(self, configs: Sequence[QueueConfig]) -> list[list[QueueConfig]]:
        """Queues that share a claim: all easy ones together, each with a limit or batches by itself; taking turns."""
        single = [[one] for one in configs if one.is_limited or self._batch_size(one.name) > 1]
        easy = [one for one in configs if not one.is_limited and self._batch_size(one.name) == 1]
        portions = [*single, easy] if easy else single
        self._turn = (self._turn + 1) % (len(portions) or 1)
        turned = portions[self._turn :] + portions[: self._turn]
        return sorted(turned, key=lambda portion: self._lane_marks.foremost_lane([one.name for one in portion]))

    async def _claim_portion(self, connection: Connection, portion: Sequence[QueueConfig], slots: int) -> list[Claim]:
        first = portion[0]
        if first.is_limited:
            return await self._claim_limited(connection, first, slots)
        batch_size = self._batch_size(first.name)
        most = slots if batch_size == 1 else min(slots, self._workload.free) * batch_size
        lanes = self._lane_marks.lanes([one.name for one in portion])
        return await self._claim_lanes(connection, lanes, min(most, self._workload.batch))

    def _slots(self, claims: Sequence[Claim]) -> int:
        """How many slots these take, once they are gathered into batches."""
        return sum(-(-n // self._batch_size(queue)) for queue, n in Counter([claim.queue for claim in claims]).items())

    async def _claim_lanes(self, connection: Connection, lanes: Sequence[tuple[Lane, int]], n: int) -> list[Claim]:
        wanted, later = self._split_lanes(lanes, n)
        if not wanted:
            return []
        lease = self._next_lease()
        cursor = connection.cursor(binary=True)
        await cursor.execute(
            SQL["claim"],
            {
                "queues": [key.queue for key, _, _ in wanted],
                "lanes": array(key.lane for key, _, _ in wanted),
                "marks": array(mark for _, mark, _ in wanted),
                "limits": array(min(n, share) for _, _, share in wanted),
                "n": n,
                "worker": self._worker,
                "lease": lease,
            },
        )
        rows = await cursor.fetchall()
        rows.sort(key=itemgetter(2, 1, 0))  # lane, place, age: SQL promises no order
        claims = [Claim(*row, lease=lease) for row in rows]
        self._workload.leases.add(lease, len(claims))
        self._lane_marks.advance(claims)
        if len(claims) < n:
            self._lane_marks.forget_drained([key for key, _, _ in wanted], claims)
        return claims if claims or not later else await self._claim_lanes(connection, later, n)

    def _split_lanes(
        self, lanes: Sequence[tuple[Lane, int]], n: int
    ) -> tuple[list[tuple[Lane, int, int]], list[tuple[Lane, int]]]:
        """The lanes to claim from with the share of each, and those for when these are empty: a queue that has less
        room than the worker is asked for its foremost lane alone, or each lane would give as much as there is room."""
        now: list[tuple[Lane, int, int]] = []
        later: list[tuple[Lane, int]] = []
        narrow: set[str] = set()
        for key, mark in lanes:
            share = self._share(key.queue)
            if share <= 0:
                continue
            if key.queue in narrow:
                later.append((key, mark))
                continue
            now.append((key, mark, share))
            if share < n:
                narrow.add(key.queue)
        return now, later

    async def _claim_limited(self, connection: Connection, config: QueueConfig, n: int) -> list[Claim]:
        lanes = self._lane_marks.lanes([config.name])

        async def take(allowed: int) -> list[Claim]:
            # a limit counts claimed tasks as started: claim none ahead of time
            most = min(allowed, min(n, self._workload.free) * self._batch_size(config.name), self._workload.batch)
            return await self._claim_lanes(connection, lanes, most) if most > 0 else []

        return await self._within_limits(connection, config, take) if lanes else []

    async def _within_limits(
        self, connection: Connection, config: QueueConfig, take: Callable[[int], Awaitable[list[Claim]]]
    ) -> list[Claim]:
        """Under the lock of the queue's row, so that all workers together stay within the limit."""
        async with connection.transaction():
            tx = Tx(connection)
            limits = await lock_limits(tx, config.name)
            if limits is None:
                return []
            allowed = await _allowance(tx, limits)
            if allowed <= 0:
                self.held_back.add(config.name)
                return []
            claims = await take(allowed)
            if claims and limits.rate is not None:
                # at the time after the claim, not before: else a window could hold more starts than the rate allows
                now = await tx.only_value(SQL["now"], datetime)
                used = remember_starts(limits.rate, limits.recent, now, len(claims))
                await tx.execute(SQL["note_starts"], name=config.name, at=list(used.at), n=list(used.n))
                await tx.flush()
            return claims

    async def _claim_suspect(self, connection: Connection, configs: Sequence[QueueConfig]) -> list[Claim]:
        """One suspect; limits hold for them, too."""
        open_ = [config for config in configs if not config.paused]
        easy = [config.name for config in open_ if not config.is_limited]
        if claims := await self._take_suspect(connection, easy):
            return claims
        for config in open_:
            if config.is_limited and await has_suspects(Tx(connection), [config.name]):
                claims = await self._within_limits(
                    connection, config, lambda _, name=config.name: self._take_suspect(connection, [name])
                )
                if claims:
                    return claims
        return []

    async def _take_suspect(self, connection: Connection, queues: Sequence[str]) -> list[Claim]:
        if not queues:
            return []
        lease = self._next_lease()
        cursor = connection.cursor(binary=True)
        await cursor.execute(SQL["claim_suspect"], {"queues": list(queues), "worker": self._worker, "lease": lease})
        claims = [Claim(*row, lease=lease) for row in await cursor.fetchall()]
        self._workload.leases.add(lease, len(claims))
        return claims

    async def _delete_spent_leases(self, connection: Connection) -> None:
        if spent := self._workload.leases.take_spent():
            await connection.execute(SQL["delete_leases"], {"worker": self._worker, "leases": array(spent)})

    def _next_lease(self) -> int:
        self._lease += 1
        self._under_way.add(self._lease)
        return self._lease

    def acknowledge(self) -> None:
        """The answers of all claims have arrived."""
        self._under_way.clear()

    def mark_unacknowledged(self) -> None:
        """The claims under way failed, perhaps after the server made them: remember their leases."""
        self._unacknowledged |= self._under_way
        self._under_way.clear()

    async def give_back_unacknowledged(self, tx: Tx) -> int:
        """Give back the tasks of claims whose answer was lost; how many there were.

        Such a task is leased to a living worker that does not know of it, so no rescuer would take it back. The leases
        stay remembered, as the server may still be running the claim when we ask.
        """
        if not self._unacknowledged:
            return 0
        return await give_back_leases(tx, self._worker, self._unacknowledged)

    async def look(self, tx: Tx, queues: Sequence[str]) -> None:
        """Look at all lanes, in case a notification was missed."""
        for row in await tx.all(SQL["lanes"], _LaneHead, queues=list(queues)):
            self._lane_marks.note_ready(row.queue, row.lane, row.seq)
        self._looked = True


async def has_suspects(tx: Tx, queues: Sequence[str]) -> bool:
    """Whether a suspect waits in one of these queues."""
    return await tx.only_value(SQL["suspects_waiting"], bool, queues=list(queues))


async def _allowance(tx: Tx, limits: QueueLimits) -> int:
    """How many tasks of a limited queue may start now."""
    if limits.paused:
        return 0
    allowed = 2**31 - 1
    if limits.concurrency is not None:
        allowed = limits.concurrency - limits.running
    if limits.breaker_state == "open":
        if limits.breaker_since is not None and limits.now < limits.breaker_since + limits.breaker_reset:
            return 0
        await half_open(tx, limits.name)
    if limits.breaker_state != "closed":
        allowed = min(allowed, 1 - limits.running)
    if limits.rate is not None:
        allowed = min(allowed, free_starts(limits.rate, limits.recent, limits.now)[0])
    return allowed
