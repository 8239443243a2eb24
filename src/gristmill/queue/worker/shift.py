"""One registration of a worker: what it claims, runs and settles until it stops or loses its leases."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta

from gristmill.db import Column, Connection, Database, queries
from gristmill.ids import TaskId, WorkerId
from gristmill.processes import ProcessPool
from gristmill.queue.claim import Claim
from gristmill.queue.config import QueueConfig, load_configs
from gristmill.queue.handlers import Handlers
from gristmill.queue.journal import Journal
from gristmill.queue.letters import to_json
from gristmill.queue.limiter import Limiters
from gristmill.queue.link import LOST, DatabaseLink
from gristmill.queue.loops import run_together
from gristmill.queue.outcome import Stop
from gristmill.queue.upkeep.breaker import HealthReporter
from gristmill.queue.worker.claimer import CLAIM_SESSION, Claimer, has_suspects
from gristmill.queue.worker.lane_marks import LaneMarks
from gristmill.queue.worker.plans import PLANNED_ONCE
from gristmill.queue.worker.runner import Runner
from gristmill.queue.worker.settler import Settler
from gristmill.queue.worker.workload import Workload
from gristmill.settings import QueueSettings
from gristmill.telemetry import WorkerMetrics, log

SQL = queries("gristmill.queue.worker", "shift.sql")
CHANNEL = "gristmill"  # of NOTIFY
FULL_LOOK = 5.0  # seconds between looks at all lanes, at least
CLAIM_LIMIT = 30.0
CLOSE_LIMIT = 5.0
INTERRUPT_LIMIT = 2.0  # seconds that an interrupted handler has to tidy up
QUIET = 30.0  # seconds without a notification after which the listener asks whether somebody is there


INTEGERS = re.compile(r"\d{1,9} -?\d{1,18}")  # a lane and a place; anybody may notify, so anything else is ignored


class Shift:
    """Three loops around the workload (claim, settle, listen), and small duties on a timer."""

    def __init__(
        self,
        db: Database,
        worker: WorkerId,
        handlers: Handlers,
        settings: QueueSettings,
        metrics: WorkerMetrics,
        *,
        queues: Sequence[str],
        concurrency: int,
        processes: int,
        solo: bool,
        unsupervised: bool,
        journal: Journal,
    ) -> None:
        self.worker = worker
        self._db = db
        self._settings = settings
        self._metrics = metrics
        self._queues = list(queues)
        self._configs: dict[str, QueueConfig] = {name: QueueConfig(name) for name in queues}
        self._workload = Workload(concurrency, settings.batch, alone=solo)
        self._lane_marks = LaneMarks()
        self._health = HealthReporter()
        self._limiters = Limiters(db, worker=worker, on_hit=metrics.count_rate_limit_hit)
        self._claim_soon = asyncio.Event()
        self._settle_soon = asyncio.Event()
        self._less_held = asyncio.Event()  # answers were settled: we hold less
        self._runner = Runner(
            self._workload,
            handlers,
            self._configs,
            self._health,
            metrics,
            limiters=self._limiters,
            settle_soon=self._settle_soon,
            journal=journal,
            on_slot_free=self._on_slot_free,
            processes=ProcessPool(processes, nice=settings.nice),
        )
        self._claimer = Claimer(
            worker,
            self._workload,
            self._lane_marks,
            self._runner.share,
            solo=solo,
            batch_size=self._runner.batch_size,
            unsupervised=unsupervised,
        )
        self._settler = Settler(worker, self._workload, self._configs, metrics, journal, settings.max_payload)
        self._solo = solo
        self._ending = False
        self._lost = False
        self._next_due = 0.0
        self._look_every = FULL_LOOK
        self.idle = asyncio.Event()  # the last claim found nothing, and we hold nothing

    # --- the life of a shift

    async def work(self) -> None:
        """Run until cancelled."""
        await run_together(
            self._claim_on(),
            self._settle(),
            self._listen(),
            self._every(0.25, self._end_overdue),
            self._every(0.5, self._write_progress),
            self._every(1.0, self._report_health),
            self._promote(),
            self._look(),
        )

    async def finish(self, within: timedelta) -> bool:
        """Claim nothing more, give back what has not begun, wait for the rest, interrupt it, give back what goes on.

        Whether nothing is left in our name: if the database is away, others must take it back.
        """
        self._ending = True
        loop = asyncio.get_running_loop()
        bound = loop.time() + within.total_seconds()
        given_back = await self._try_give_back(self._workload.take_unstarted(), within.total_seconds())
        emptied = await self._wait_until_empty(bound - loop.time())
        if not emptied:
            for claim in list(self._workload.running.values()):
                claim.finish_early("stop")
            emptied = await self._wait_until_empty(INTERRUPT_LIMIT) or await self._leave_the_stubborn()
        with suppress(*LOST):  # the breaker must learn how the last task ended
            async with asyncio.timeout(CLOSE_LIMIT):
                await self._report_health()
        return given_back and emptied

    async def _try_give_back(self, claims: Sequence[Claim], within: float) -> bool:
        with suppress(*LOST):
            async with asyncio.timeout(within):  # the database may be away just now
                await self._give_back(claims)
                return True
        return False

    async def _leave_the_stubborn(self) -> bool:
        """Leave handlers that ignore the interruption behind and give their tasks back; whether that worked."""
        stubborn = list(self._workload.running.values())
        if self._workload.answers or not await self._try_give_back(stubborn, CLOSE_LIMIT):
            return False
        log.warning("shift.left_behind", worker=self.worker, tasks=[claim.id for claim in stubborn])
        for claim in stubborn:
            claim.end = "lost"  # its answer comes too late
            self._runner.forget(claim)
        return True

    async def _wait_until_empty(self, within: float) -> bool:
        """Wait until we hold nothing; whether that came true in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while not self._workload.empty:
                    self._less_held.clear()
                    await self._less_held.wait()
        return self._workload.empty

    def abandon(self) -> None:
        """The leases are lost: whatever is computed from now on is not ours to write."""
        self._ending = self._lost = True
        self._workload.take_unstarted()
        self._settler.forget()
        for claim in list(self._workload.running.values()):
            claim.finish_early("lost")

    async def close(self) -> None:
        """After the loops have ended: the answer of the last claim may have been lost."""
        if not self._lost:
            self._claimer.mark_unacknowledged()
            with suppress(*LOST):
                async with asyncio.timeout(CLOSE_LIMIT):
                    await self._give_back_unacknowledged()
        await self._runner.close()

    # --- claiming

    async def _claim_on(self) -> None:
        async with DatabaseLink(self._db, "claim", **CLAIM_SESSION) as link:
            while True:
                with suppress(TimeoutError):
                    # not wait_for: before Python 3.12 it loses a cancellation that comes together with the event
                    async with asyncio.timeout(self._settings.poll.total_seconds()):
                        await self._claim_soon.wait()
                self._claim_soon.clear()
                try:
                    await self._claim_all(link)
                    link.ok()
                except LOST as error:
                    self._claimer.mark_unacknowledged()
                    await link.drop(error)
                    with suppress(*LOST):
                        await self._give_back_unacknowledged()
                    self._claim_soon.set()

    async def _give_back_unacknowledged(self) -> None:
        async with self._db.transaction() as tx:
            if n := await self._claimer.give_back_unacknowledged(tx):
                log.warning("claim.unacknowledged", worker=self.worker, tasks=n)

    async def _claim_all(self, link: DatabaseLink) -> None:
        """Claim until we hold enough, or nothing more can be claimed."""
        while not self._ending:
            wanted = self._workload.to_claim()
            if wanted == 0:
                return None
            connection = await link.connection()
            began = time.monotonic()
            async with asyncio.timeout(CLAIM_LIMIT):
                claims = await self._claimer.claim(connection, list(self._configs.values()), wanted)
            self._metrics.observe_claim(len(claims), time.monotonic() - began)
            if self._ending:
                await self._give_back(claims)
            else:
                self._take(claims)
            self._claimer.acknowledge()
            if len(claims) < wanted:
                return self._note_if_idle(claims)
        return None

    def _take(self, claims: Sequence[Claim]) -> None:
        if claims:
            self.idle.clear()
            self._workload.accept(claims)
            self._runner.dispatch()
            self._metrics.set_active(self._workload.busy)

    def _note_if_idle(self, claims: Sequence[Claim]) -> None:
        if not claims and self._workload.empty:
            self.idle.set()

    async def _give_back(self, claims: Sequence[Claim]) -> None:
        if claims:
            async with DatabaseLink(self._db, "give back") as link:
                await self._settler.give_back(await link.connection(), claims)

    def _on_slot_free(self) -> None:
        self._settle_soon.set()
        if self._workload.to_claim():
            self._claim_soon.set()

    # --- settling

    async def _settle(self) -> None:
        async with DatabaseLink(self._db, "settle", **PLANNED_ONCE) as link:
            while True:
                await self._settle_soon.wait()
                self._settle_soon.clear()
                try:
                    await self._settler.flush(await link.connection())
                    link.ok()
                except LOST as error:
                    await link.drop(error)
                    self._settle_soon.set()
                    continue
                self._less_held.set()
                self._runner.dispatch()
                self._metrics.set_active(self._workload.busy)
                if self._workload.answers:
                    self._settle_soon.set()
                if self._workload.to_claim():
                    self._claim_soon.set()

    # --- listening

    async def _listen(self) -> None:
        async with DatabaseLink(self._db, "listen") as link:
            while True:
                try:
                    connection = await link.connection()
                    await connection.execute(f"LISTEN {CHANNEL}")
                    await self._catch_up()
                    link.ok()
                    await self._handle_notices(connection)
                except LOST as error:
                    await link.drop(error)

    async def _handle_notices(self, connection: Connection) -> None:
        """Handle notifications; after a silence, check that the connection still answers."""
        while True:
            async for notice in connection.notifies(timeout=QUIET):
                await self._handle_notice(notice.payload)
            async with asyncio.timeout(CLAIM_LIMIT):
                await connection.execute("SELECT")

    async def _catch_up(self) -> None:
        """Look up everything that a notification may have said while nobody listened."""
        await self._reload()
        async with self._db.transaction() as tx:
            await self._claimer.look(tx, self._queues)
        await self._cancel_asked()
        self._claim_soon.set()

    async def _handle_notice(self, payload: str) -> None:
        match payload.split(" "):
            case ["ready", queue, *place] if queue in self._configs and INTEGERS.fullmatch(" ".join(place)):
                self._lane_marks.note_ready(queue, int(place[0]), int(place[1]))
                self._claim_soon.set()
            case ["cancel", task] if task.isdecimal() and self._workload.holds(TaskId(int(task))):
                await self._cancel_asked()
            case ["queue", queue] if queue in self._configs:
                await self._reload()
                self._claim_soon.set()
            case ["limiter", name]:
                self._limiters.wake(name)
            case ["suspects"]:
                self._claim_soon.set()
            case _:
                pass

    async def _cancel_asked(self) -> None:
        """Cancel what the database says; a notice alone proves nothing, because every session may send one."""
        async with self._db.transaction() as tx:
            cancelled = await tx.values(SQL["cancelled_in_hand"], Column[TaskId], worker=self.worker)
        for task in cancelled:
            self._cancel(task)

    def _cancel(self, task: TaskId) -> None:
        claim = self._workload.running.get(task)
        if claim is not None:
            claim.cancelled = True
            claim.finish_early("cancel")
        for unstarted in self._workload.take([task]):
            self._workload.answers.append((unstarted, Stop("cancelled before it started")))
            self._settle_soon.set()

    async def _reload(self) -> None:
        async with self._db.transaction() as tx:
            self._configs.update(await load_configs(tx, self._queues))
        held_back = {name for name, config in self._configs.items() if config.paused or config.is_limited}
        returned = [claim for claim in self._workload.waiting if claim.queue in held_back]
        for _ in self._workload.take(claim.id for claim in returned):
            pass
        try:
            await self._give_back(returned)
        except BaseException:
            self._workload.accept(returned)  # still ours: the next look tries again
            raise

    # --- duties on a timer

    async def _every(self, seconds: float, duty: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            with suppress(*LOST):
                await duty()

    async def _end_overdue(self) -> None:
        self._runner.end_overdue()
        if self._claimer.held_back:
            self._claim_soon.set()

    async def _write_progress(self) -> None:
        if not self._runner.progress:
            return
        reports, self._runner.progress = self._runner.progress, {}
        rows = [
            {"task": task, "current": p.current, "total": p.total, "message": p.message} for task, p in reports.items()
        ]
        try:
            async with self._db.transaction() as tx:
                await tx.execute(SQL["note_progress"], rows=to_json(rows), worker=self.worker)
        except LOST:
            raise
        except Exception as error:  # noqa: BLE001 a handler's text that PostgreSQL refuses must not end us
            log.warning("progress.unwritable", tasks=list(reports), error=str(error)[:200])

    async def _report_health(self) -> None:
        if self._health.pending:
            async with self._db.transaction() as tx:
                await self._health.report(tx)

    async def _promote(self) -> None:
        """Let tasks be claimed whose time has come; sleep until the next is due."""
        while True:
            pause = self._settings.poll.total_seconds()
            with suppress(*LOST):
                async with self._db.transaction() as tx:
                    promoted = await tx.only_value(SQL["promote"], int, n=500)
                    due = await tx.value(SQL["next_due"], float)
                if promoted == 500:
                    continue
                if due is not None:
                    # a task that is overdue and was not promoted is locked by another worker
                    pause = min(pause, max(0.005 if promoted or due > 0 else 0.1, due))
            await asyncio.sleep(pause)

    async def _look(self) -> None:
        """Look at all lanes now and then, in case a notification was missed; the longer it takes, the less often."""
        while True:
            await asyncio.sleep(self._look_every)
            began = time.monotonic()
            with suppress(*LOST):
                await self._catch_up()
                await self._give_back_unacknowledged()
                await self._measure_depths()
            self._look_every = max(FULL_LOOK, 20 * (time.monotonic() - began))

    async def _measure_depths(self) -> None:
        async with self._db.transaction() as tx:
            for queue, depth in (await tx.pairs(SQL["depths"], dict[str, int], queues=self._queues)).items():
                self._metrics.set_depth(queue, depth)

    async def anything_left(self, *, scheduled: bool = True) -> bool:
        """Whether these queues hold anything that will still run by itself, `scheduled` for later or now."""
        async with self._db.transaction() as tx:
            if self._solo:
                return await has_suspects(tx, self._queues)
            return await tx.only_value(SQL["anything_left"], bool, queues=self._queues, scheduled=scheduled)
