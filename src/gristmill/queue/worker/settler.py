"""Settles answers in batches; what cannot be settled together is settled alone."""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from operator import attrgetter

from gristmill.db import Connection, Tx, array, queries
from gristmill.errors import LeaseLost, Transient
from gristmill.ids import WorkerId
from gristmill.queue.claim import Claim
from gristmill.queue.config import QueueConfig
from gristmill.queue.journal import Journal
from gristmill.queue.link import LOST
from gristmill.queue.outcome import Bury, Outcome, Retry
from gristmill.queue.retry import decide
from gristmill.queue.send import MAX_PAYLOAD
from gristmill.queue.settle import SQL as SETTLE
from gristmill.queue.settle import Settled, completion_params, has_write, is_plain, run_fenced, settle, status_of
from gristmill.queue.worker.give_back import give_back_claims
from gristmill.queue.worker.plans import PLANNED_ONCE
from gristmill.queue.worker.workload import Workload
from gristmill.telemetry import WorkerMetrics, log

SQL = queries("gristmill.queue.worker", "settler.sql")
BY_ID = attrgetter("id")
SWITCHES = [name for name in PLANNED_ONCE if name.startswith("enable_")]
# SQLSTATE classes: connection, rollback (deadlock, serialization), resources (disk, memory), operator, system
WORLD = frozenset({"08", "40", "53", "57", "58"})
CANCELED_STATEMENT = "57014"  # what took too long will take too long again
STATEMENT_LIMIT = 60.0  # seconds; a network that swallows packets must not hold us for ever


class TooLong(TimeoutError):
    """Settling took longer than it may; the connection is given up."""


def raise_if_nobodys_fault(error: Exception, connection: Connection) -> None:
    """Raise again what the database is to blame for, and not what one of the answers wanted written."""
    state: str = getattr(error, "sqlstate", None) or ""
    if isinstance(error, LOST) and (connection.closed or (state[:2] in WORLD and state != CANCELED_STATEMENT)):
        raise error
    if connection.closed:
        raise ConnectionError("the connection was lost while answers were written") from error


class Settler:
    """Owns the way of answers into the database."""

    def __init__(
        self,
        worker: WorkerId,
        workload: Workload,
        configs: Mapping[str, QueueConfig],
        metrics: WorkerMetrics,
        journal: Journal,
        max_payload: int = MAX_PAYLOAD,
    ) -> None:
        self._worker = worker
        self._workload = workload
        self._configs = configs
        self._metrics = metrics
        self._journal = journal
        self._max_payload = max_payload
        self._stuck = False  # the last batch was not settled in time: one of its writes may never end

    async def flush(self, connection: Connection) -> None:
        """Settle what waits, all in one transaction if possible."""
        batch = list(islice(self._workload.answers, self._workload.batch))
        if not batch:
            return
        settled: Sequence[Settled] = batch
        try:
            if self._stuck:
                settled = await self._apart(connection, batch)
            else:
                await self._commit(connection, batch)
        except TooLong:
            self._stuck = True  # the connection is gone; on the next one, each by itself
            raise
        except Exception as error:  # noqa: BLE001 writes are the handlers', and may raise anything
            raise_if_nobodys_fault(error, connection)  # the same batch is tried again when the database is back
            # one answer made the whole batch fail: settle each alone to find it
            log.info("settle.apart", tasks=len(batch), error=str(error)[:200])
            settled = await self._apart(connection, batch)
        self._stuck = False
        self._finish_batch(batch, settled)

    async def _commit(self, connection: Connection, batch: Sequence[Settled]) -> None:
        limit = asyncio.timeout(STATEMENT_LIMIT)
        try:
            async with limit:
                await self._commit_at_leisure(connection, batch)
        except TimeoutError as error:
            if limit.expired():  # and not one that a write raised
                raise TooLong(f"{len(batch)} answers were not settled after {STATEMENT_LIMIT:g} s") from error
            raise

    async def _commit_at_leisure(self, connection: Connection, batch: Sequence[Settled]) -> None:
        clears = self._having("clear_payload")
        if is_plain(batch, clears):
            claims = sorted([claim for claim, _ in batch], key=BY_ID)  # one order of locking for everybody
            await run_fenced(connection.execute(SETTLE["complete"], completion_params(self._worker, claims)))
            return
        async with connection.transaction():
            tx = Tx(connection)
            await tx.one(SQL["plan_anew"], names=SWITCHES)
            await settle(
                tx,
                self._worker,
                batch,
                clears=clears,
                retries_first=self._having("retries_first"),
                max_payload=self._max_payload,
            )
            await tx.flush()

    async def _apart(self, connection: Connection, batch: Sequence[Settled]) -> list[Settled]:
        """Settle one by one; what became of those that were still ours."""
        settled: list[Settled] = []
        mine = await self._still_mine(connection, [claim for claim, _ in batch])
        for claim, outcome in batch:
            if claim.id not in mine:
                log.warning("task.lease_lost", task=claim.id, kind=claim.kind)
                continue
            settled += await self._alone(connection, claim, outcome)
        return settled

    async def _alone(self, connection: Connection, claim: Claim, outcome: Outcome) -> list[Settled]:
        try:
            await self._commit(connection, [(claim, outcome)])
        except TooLong:
            # an answer without a write only waited for another transaction's lock: the task is not to blame
            if has_write(outcome):
                late = Transient(f"its write was not done after {STATEMENT_LIMIT:g} s")
                self._answer_instead(claim, self._decide_failure(claim, late))
            raise
        except Exception as error:
            raise_if_nobodys_fault(error, connection)
            if isinstance(error, LeaseLost):
                log.warning("task.lease_lost", task=claim.id, kind=claim.kind)
                return []
            log.warning("task.write_failed", task=claim.id, kind=claim.kind, error=str(error)[:200])
            if isinstance(outcome, Retry | Bury):
                raise  # these outcomes write nothing of the handler's: it is a bug of ours
            return await self._alone(connection, claim, self._decide_failure(claim, error))
        return [(claim, outcome)]

    def _answer_instead(self, claim: Claim, outcome: Outcome) -> None:
        for place, (held, _) in enumerate(self._workload.answers):
            if held is claim:
                self._workload.answers[place] = (claim, outcome)

    def _decide_failure(self, claim: Claim, error: Exception) -> Outcome:
        policy = self._configs[claim.queue].retry.of(claim.max_attempts)
        return decide(error, attempt=claim.attempt, policy=policy, chance=random.random())

    async def _still_mine(self, connection: Connection, claims: Sequence[Claim]) -> set[int]:
        ids, leases = array(claim.id for claim in claims), array(claim.lease for claim in claims)
        params = {"ids": ids, "leases": leases, "worker": self._worker}
        cursor = await connection.execute(SQL["still_mine"], params)
        return {row[0] for row in await cursor.fetchall()}

    def _finish_batch(self, batch: Sequence[Settled], settled: Sequence[Settled]) -> None:
        del self._workload.answers[: len(batch)]
        for claim, _ in batch:
            self._journal.end(claim)
        self._workload.leases.release([claim for claim, _ in batch])
        self._workload.pace.note(len(batch))
        self._metrics.observe_settled(len(batch))
        for (queue, outcome), n in Counter([(claim.queue, type(outcome)) for claim, outcome in settled]).items():
            self._metrics.count_processed(queue, status_of(outcome), n)

    def forget(self) -> None:
        """The leases are lost: drop the answers, and clear their journal places, as none of them killed a worker."""
        for claim, _ in self._workload.answers:
            self._journal.end(claim)
        self._workload.answers.clear()

    async def give_back(self, connection: Connection, claims: Sequence[Claim]) -> None:
        if claims:
            async with connection.transaction():
                await give_back_claims(Tx(connection), self._worker, claims)
            self._workload.leases.release(claims)

    def _having(self, flag: str) -> frozenset[str]:
        return frozenset(name for name, config in self._configs.items() if getattr(config, flag))
